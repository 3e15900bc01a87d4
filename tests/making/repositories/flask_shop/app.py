"""A Flask app without a document, as many are: routes, a form, JSON, a page, a redirect."""

from flask import Flask, jsonify, redirect, render_template_string, request, url_for
from flask.views import MethodView

app = Flask(__name__)
ITEMS = {1: "apple", 2: "pear"}


@app.get("/")
def index():
    """The front page."""
    return render_template_string("<h1>{{ count }} items</h1>", count=len(ITEMS))


@app.get("/items/<int:item_id>")
def item(item_id):
    """One item.

    By its number.
    """
    return jsonify(id=item_id, name=ITEMS.get(item_id))


@app.get("/search")
def search():
    limit = request.args.get("limit", 5, type=int)
    words = request.args.getlist("word")
    return jsonify(limit=limit, words=words, exact=request.args.get("exact") == "yes")


@app.post("/sum")
def add():
    data = request.get_json() or {}
    return {"sum": int(data["a"]) + int(data.get("b", 0))}


@app.route("/names", methods=["GET", "POST"])
def names():
    if request.method == "POST":
        return redirect(url_for("item", item_id=len(request.form["name"])))
    return jsonify(sorted(ITEMS.values()))


@app.get("/files/<path:name>")
def named(name):
    return {"name": name}


@app.get("/shapes/<any(circle, square):shape>/<float:size>")
def shape(shape, size):
    return {"shape": shape, "size": size}


class Note(MethodView):
    def get(self, key):
        """A note."""
        return {"key": str(key)}

    def delete(self, key):
        return {"deleted": str(key)}


app.add_url_rule("/notes/<uuid:key>", view_func=Note.as_view("note"))

if __name__ == "__main__":
    app.run()
