// An app without a document, as many are: routers in routers, JSON, a page, a redirect, a file that it writes.
const fs = require("node:fs");
const express = require("express");

const app = express();
app.use(express.json());
app.use("/api", require("./routes"));
app.get("/", (req, res) => res.send("<h1>items</h1>"));
app.get("/first", (req, res) => res.redirect("/api/items/1"));
app.get(/^\/odd/, (req, res) => res.end());

if (require.main === module) {
  fs.writeFileSync("started.txt", "yes");
  app.listen(process.env.PORT || 3000, "0.0.0.0", () => console.log("up"));
}
