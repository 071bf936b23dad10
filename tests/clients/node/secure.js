// Produces a record to partition 0 by a secure listener and prints what it reads back, with kafkajs.
// Arguments: bootstrap topic authority.pem|- mechanism|- user secret; for OAUTHBEARER the secret is a token.
import { readFileSync } from "node:fs";
import kafkajs from "kafkajs";

const { Kafka, logLevel } = kafkajs;
const [bootstrap, topic, authority, mechanism, username, password] = process.argv.slice(2);
const settings = {
  clientId: "node", brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 5 },
  // So long before a session's end it authenticates again. By default 10 s, which for short sessions would be at once;
  // brokers bear it once a second.
  reauthenticationThreshold: 400,
};
if (authority !== "-") {
  settings.ssl = { ca: [readFileSync(authority, "utf-8")] };
}
if (mechanism === "OAUTHBEARER") {
  settings.sasl = { mechanism: "oauthbearer", oauthBearerProvider: async () => ({ value: password }) };
} else if (mechanism !== "-") {
  settings.sasl = { mechanism: mechanism.toLowerCase(), username, password };
}
const kafka = new Kafka(settings);

const producer = kafka.producer();
await producer.connect();
await producer.send({ topic, messages: [{ value: "value", partition: 0 }] });
await producer.disconnect();

const consumer = kafka.consumer({ groupId: topic });
await consumer.connect();
await consumer.subscribe({ topics: [topic], fromBeginning: true });
const read = new Promise((resolve) => {
  consumer.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) });
});
console.log(await read);
await consumer.disconnect();
