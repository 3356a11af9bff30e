// Reads deliveries, one a line: {preset, url, headers, body (base64), receiver}. Writes a line for each: "> ok", "> refused", or "> missing" and a package.
import { createRequire } from "node:module";
import { EventEmitter } from "node:events";
import https from "node:https";
import readline from "node:readline";

const require = createRequire(import.meta.url);

const receivers = {
  async github(d) {
    const { Webhooks } = await import("@octokit/webhooks");
    return new Webhooks({ secret: d.receiver }).verify(d.text, d.headers["x-hub-signature-256"]);
  },
  async shopify(d) {
    await import("@shopify/shopify-api/adapters/node");
    const { shopifyApi, LATEST_API_VERSION, ApiVersion } = await import("@shopify/shopify-api");
    const shopify = shopifyApi({
      apiKey: "key", apiSecretKey: d.receiver, hostName: "hooks.example.com", isEmbeddedApp: false,
      apiVersion: LATEST_API_VERSION ?? Object.values(ApiVersion).at(-1),
    });
    const rawRequest = { method: "POST", url: d.url, headers: d.headers };
    const answer = await shopify.webhooks.validate({ rawBody: d.text, rawRequest, rawResponse: {} });
    if (!answer.valid) throw new Error(JSON.stringify(answer));
    return true;
  },
  async sns(d) {
    https.get = (_, answer) => { // the test pair's certificate, and not one of AWS
      const response = Object.assign(new EventEmitter(), { statusCode: 200 });
      answer(response);
      response.emit("data", d.receiver);
      response.emit("end");
      return new EventEmitter();
    };
    const Validator = require("sns-validator");
    return new Promise((resolve, reject) => new Validator().validate(JSON.parse(d.text), (err) => (err ? reject(err) : resolve(true))));
  },
  async hubspot(d) {
    const { Signature } = require("@hubspot/api-client");
    return Signature.isValid({
      signatureVersion: "v3", method: "POST", url: d.url, clientSecret: d.receiver, requestBody: d.text,
      signature: d.headers["x-hubspot-signature-v3"], timestamp: Number(d.headers["x-hubspot-request-timestamp"]),
    });
  },
  async square(d) {
    const { WebhooksHelper } = require("square");
    return WebhooksHelper.verifySignature({
      requestBody: d.text, signatureHeader: d.headers["x-square-hmacsha256-signature"], signatureKey: d.receiver, notificationUrl: d.url,
    });
  },
  async linear(d) {
    const { LinearWebhookClient } = await import("@linear/sdk/webhooks");
    return new LinearWebhookClient(d.receiver).verify(d.raw, d.headers["linear-signature"], JSON.parse(d.text).webhookTimestamp);
  },
  async discord(d) {
    const { verifyKey } = require("discord-interactions");
    return verifyKey(d.raw, d.headers["x-signature-ed25519"], d.headers["x-signature-timestamp"], d.receiver);
  },
  async adyen(d) {
    const { hmacValidator } = require("@adyen/api-library");
    return new hmacValidator().validateHMAC(JSON.parse(d.text).notificationItems[0].NotificationRequestItem, d.receiver);
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const d = JSON.parse(line);
  d.raw = Buffer.from(d.body, "base64");
  d.text = d.raw.toString();
  try {
    console.log(`> ${(await receivers[d.preset](d)) ? "ok" : "refused"}`);
  } catch (err) {
    const missing = err.code === "ERR_MODULE_NOT_FOUND" || err.code === "MODULE_NOT_FOUND";
    console.log(`> ${missing ? "missing" : "refused"} ${String(err.message).split("\n")[0]}`);
  }
}
