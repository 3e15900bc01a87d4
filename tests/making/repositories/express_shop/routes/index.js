const { readFileSync } = require("node:fs");
const { Router } = require("express");

const items = Router({ mergeParams: true });
items.get("/:id(\\d+)", (req, res) => res.json({ id: req.params.id, lang: req.query.lang ?? "en" }));
items.post("/", (req, res) => {
  const { name, size = 3 } = req.body;
  if (!name) return res.status(422).json({ error: "name" });
  res.status(201).json({ name, size, started: readFileSync("started.txt", "utf8") });
});

module.exports = Router().use("/items", items);
