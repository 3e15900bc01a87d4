const express = require("express");
const swaggerJsdoc = require("swagger-jsdoc");
const swaggerUi = require("swagger-ui-express");

const app = express();
const api = express.Router();
const definition = { openapi: "3.0.0", info: { title: "Words", version: "1" }, servers: [{ url: "http://localhost:3000/api" }] };

/**
 * @openapi
 * /count:
 *   get:
 *     operationId: countWords
 *     summary: Counts words.
 *     parameters: [{name: text, in: query, required: true, schema: {type: string}}]
 *     responses: {200: {description: How many., content: {application/json: {schema: {type: integer}}}}}
 */
api.get("/count", (req, res) => res.json(String(req.query.text).split(/\s+/).filter(Boolean).length));

app.use("/api", api);
app.use("/docs", swaggerUi.serve, swaggerUi.setup(swaggerJsdoc({ definition, apis: ["./src/*.js"] })));
app.listen(3000);
