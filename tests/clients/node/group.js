// Reads in a group with kafkajs or @platformatic/kafka, commits what it read, and leaves.
// Arguments: library bootstrap topic group count; a line a record: partition offset.
import kafkajs from "kafkajs";
import { Consumer, MessagesStreamModes } from "@platformatic/kafka";

const [library, bootstrap, topic, groupId, wanted] = process.argv.slice(2);
const count = Number(wanted);

async function readKafkajs() {
  const kafka = new kafkajs.Kafka({ clientId: "node", brokers: [bootstrap], logLevel: kafkajs.logLevel.ERROR });
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500 });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  let found = 0;
  await new Promise((done, failed) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => failed(payload.error));
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        console.log(partition, message.offset);
        await consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }]);
        if (++found === count) done();
      },
    });
  });
  await consumer.disconnect();
}

async function readPlatformatic() {
  const consumer = new Consumer({ clientId: "node", bootstrapBrokers: [bootstrap], groupId });
  const stream = await consumer.consume({
    topics: [topic], mode: MessagesStreamModes.COMMITTED, fallbackMode: "earliest", autocommit: false,
    sessionTimeout: 6000, heartbeatInterval: 500, maxWaitTime: 200,
  });
  let found = 0;
  for await (const message of stream) {
    console.log(message.partition, Number(message.offset));
    await message.commit();
    if (++found === count) break;
  }
  await consumer.close(true);
}

await { kafkajs: readKafkajs, platformatic: readPlatformatic }[library]();
process.exit(0);
