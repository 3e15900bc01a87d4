from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Mount, Route


async def squared(request):
    """The square of a number."""
    return JSONResponse({"squared": request.path_params["number"] ** 2})


async def upper(request):
    return PlainTextResponse(request.query_params["text"].upper())


class Words(HTTPEndpoint):
    async def post(self, request):
        data = await request.json()
        return JSONResponse({"words": len(str(data["text"]).split())})


app = Starlette(routes=[Route("/squared/{number:int}", squared), Mount("/texts", routes=[Route("/upper", upper), Route("/words", Words)])])
