import express from "express";

export const app = express();
app.get("/v1/double/:number", (req, res) => res.json({ doubled: 2 * Number(req.params.number) }));

app.listen(4000);
