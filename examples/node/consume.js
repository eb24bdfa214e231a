// Keeps PostgreSQL tables equal to storestream's topics.
//
//   psql "$DATABASE" -f ../tables.sql
//   npm ci
//   BROKERS=127.0.0.1:9092 REGISTRY=http://127.0.0.1:8081 DATABASE=postgres://... node consume.js
const { CompressionCodecs, CompressionTypes, Kafka } = require("kafkajs");
const { SchemaRegistry } = require("@kafkajs/confluent-schema-registry");
const avro = require("avsc");
const pg = require("pg");

// What storestream writes is compressed with snappy (kafka.compression). kafkajs has only gzip by itself.
CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");

// Without these two, money is bytes and times are numbers. Money becomes text: a number would round it.
class Decimal extends avro.types.LogicalType {
  constructor(schema, options) {
    super(schema, options);
    this.scale = schema.scale;
  }
  _fromValue(bytes) {
    const n = BigInt.asIntN(8 * bytes.length, BigInt("0x0" + bytes.toString("hex")));
    const digits = String(n < 0n ? -n : n).padStart(this.scale + 1, "0");
    const point = digits.length - this.scale;
    return (n < 0n ? "-" : "") + digits.slice(0, point) + "." + digits.slice(point);
  }
}
class Instant extends avro.types.LogicalType {
  _fromValue(milliseconds) {
    return new Date(milliseconds).toISOString();
  }
}

const registry = new SchemaRegistry(
  { host: process.env.REGISTRY ?? "http://127.0.0.1:8081" },
  { AVRO: { logicalTypes: { decimal: Decimal, "timestamp-millis": Instant } } },
);
const kafka = new Kafka({ brokers: (process.env.BROKERS ?? "127.0.0.1:9092").split(",") });
const consumer = kafka.consumer({ groupId: process.env.GROUP ?? "example-node", readUncommitted: false });
const db = new pg.Client({ connectionString: process.env.DATABASE });

// The columns of each table. A field that topics get later is left out until its table has a column for it, and
// this is started again.
const columnsOf = {};
async function readColumns() {
  const { rows } = await db.query(
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()");
  for (const { table_name: table, column_name: column } of rows) {
    (columnsOf[table] ??= new Set()).add(column);
  }
}

let written = {}; // records by topic, within a second
setInterval(() => {
  if (Object.keys(written).length > 0) {
    console.log("written:", JSON.stringify(written));
  }
  written = {};
}, 1000);

async function write({ topic, message }) {
  written[topic] = (written[topic] ?? 0) + 1;
  const table = topic.replace("store.", "");
  const { id } = await registry.decode(message.key);
  if (message.value === null) { // a tombstone: the row is gone
    await db.query(`DELETE FROM ${table} WHERE id = $1`, [id]);
    return;
  }
  const row = await registry.decode(message.value);
  const columns = Object.keys(row).filter((field) => columnsOf[table].has(field));
  await db.query(
    `INSERT INTO ${table} (${columns}) VALUES (${columns.map((_, i) => `$${i + 1}`)})
     ON CONFLICT (id) DO UPDATE SET ${columns.map((c) => `${c} = excluded.${c}`)}`,
    columns.map((field) => row[field]),
  );
}

// Where kafkajs gives up it stops reading, and the process would live on.
consumer.on(consumer.events.CRASH, ({ payload }) => {
  if (!payload.restart) {
    process.exit(1);
  }
});

async function main() {
  await db.connect();
  await readColumns();
  await consumer.connect();
  // By name: a pattern would also meet store.watermarks, which is JSON and no row.
  await consumer.subscribe({
    topics: ["store.orders", "store.order_items", "store.products", "store.users", "store.shipments"],
    fromBeginning: true,
  });
  // A message's offset is committed after write has returned. After a crash some rows come once more, which
  // changes nothing: each is the whole row, under its id.
  await consumer.run({ eachMessage: write });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
