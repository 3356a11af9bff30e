// Reads deliveries, one a line: {preset, url, headers, body (base64), receiver}. Writes a line for each: "> ok", "> refused", or "> missing" and a package.
import { createHash } from "node:crypto";
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
  async paddle(d) {
    const { Paddle } = require("@paddle/paddle-node-sdk");
    return new Paddle("key").webhooks.isSignatureValid(d.text, d.receiver, d.headers["paddle-signature"]);
  },
  async workos(d) { // it signs what it makes of the parsed body
    const { WorkOS } = require("@workos-inc/node");
    return new WorkOS("sk_test").webhooks.verifyHeader({ payload: JSON.parse(d.text), sigHeader: d.headers["workos-signature"], secret: d.receiver });
  },
  async line(d) {
    const { validateSignature } = require("@line/bot-sdk");
    return validateSignature(d.raw, d.receiver, d.headers["x-line-signature"]);
  },
  async razorpay(d) {
    return require("razorpay").validateWebhookSignature(d.text, d.headers["x-razorpay-signature"], d.receiver);
  },
  async "coinbase-commerce"(d) {
    return require("coinbase-commerce-node").Webhook.verifySigHeader(d.text, d.headers["x-cc-webhook-signature"], d.receiver);
  },
  async box(d) {
    const { WebhooksManager } = require("box-node-sdk/lib/managers/webhooks");
    return WebhooksManager.validateMessage(d.text, d.headers, d.receiver);
  },
  async notion(d) {
    const { verifyWebhookSignature } = require("@notionhq/client");
    return verifyWebhookSignature({ body: d.text, signature: d.headers["x-notion-signature"], verificationToken: d.receiver });
  },
  async openai(d) {
    const { OpenAI } = require("openai");
    await new OpenAI({ apiKey: "key", webhookSecret: d.receiver }).webhooks.verifySignature(d.text, d.headers);
    return true;
  },
  async polar(d) {
    const { validateEvent, WebhookVerificationError } = require("@polar-sh/sdk/webhooks");
    try {
      validateEvent(d.text, d.headers, d.receiver);
    } catch (err) {
      if (err instanceof WebhookVerificationError) throw err; // any other comes after it: the sample's event is none of Polar's
    }
    return true;
  },
  async svix(d) {
    const { Webhook } = require("svix");
    return new Webhook(d.receiver).verify(d.text, d.headers);
  },
  async plaid(d) { // Plaid's library has nothing for it, and its documentation uses this one
    const { importSPKI, jwtVerify } = await import("jose");
    const key = await importSPKI(`-----BEGIN PUBLIC KEY-----\n${d.receiver}\n-----END PUBLIC KEY-----`, "ES256");
    const { payload } = await jwtVerify(d.headers["plaid-verification"], key, { algorithms: ["ES256"], maxTokenAge: "5 min" });
    return payload.request_body_sha256 === createHash("sha256").update(d.raw).digest("hex");
  },
  async netlify(d) { // as Netlify's documentation does it
    const claims = require("jsonwebtoken").verify(d.headers["x-webhook-signature"], d.receiver, { issuer: "netlify", algorithms: ["HS256"] });
    return claims.sha256 === createHash("sha256").update(d.raw).digest("hex");
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
