from flask import Blueprint, Flask, request

api = Blueprint("api", __name__, url_prefix="/api")


@api.post("/double")
def double():
    return {"doubled": 2 * float(request.json["number"])}


def create_app(mode):
    made = Flask(__name__)
    made.config["MODE"] = mode
    made.register_blueprint(api)
    return made
