import express from "express";

export const app = express();
app.get("/v1/double/:number", (req, res) => res.json({ doubled: 2 * Number(req.params.number) }));
app.get("/v1/feed", (req, res) => res.type("application/rss+xml").send("<rss/>"));

app.listen(4000);
