// A test as a Node project has it: starts `kavka broker --ephemeral`, sends and reads a record, ends the broker.
// Arguments: the kavka command. Prints the record, then the broker's exit code.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import kafkajs from "kafkajs";

// A broker that lives until stop is called, or this process is gone.
async function kavka(command) {
  const broker = spawn(command, ["broker", "--ephemeral"], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(broker, "exit");
  const [line] = await once(createInterface({ input: broker.stdout }), "line");
  const stop = async () => {
    broker.stdin.end();
    return (await ended)[0];
  };
  return { bootstrap: JSON.parse(line).bootstrap_servers, stop };
}

const { bootstrap, stop } = await kavka(process.argv[2]);
const kafka = new kafkajs.Kafka({ clientId: "node", brokers: [bootstrap], logLevel: kafkajs.logLevel.NOTHING });
const admin = kafka.admin();
await admin.connect();
await admin.createTopics({ topics: [{ topic: "orders" }], waitForLeaders: true });
await admin.disconnect();
const producer = kafka.producer();
await producer.connect();
await producer.send({ topic: "orders", messages: [{ value: "node" }] });
await producer.disconnect();
const consumer = kafka.consumer({ groupId: "g" });
await consumer.connect();
await consumer.subscribe({ topics: ["orders"], fromBeginning: true });
await new Promise((done) => consumer.run({ eachMessage: async ({ message }) => done(console.log(String(message.value))) }));
await consumer.disconnect();
console.log(await stop());
