-- Keeps Apache Iceberg tables equal to storestream's topics: sql-client.sh -f store.sql
-- pom.xml names the connectors that go into Flink's lib folder.

-- With each checkpoint Iceberg commits what was written since the one before. In production let it be a minute
-- or more, because each commit adds files to each table that has changed.
SET 'execution.checkpointing.interval' = '10 s';
SET 'execution.checkpointing.dir' = 'file:///tmp/store-iceberg/checkpoints';
SET 'execution.checkpointing.externalized-checkpoint-retention' = 'RETAIN_ON_CANCELLATION';

CREATE TABLE orders (
  id BIGINT, user_id BIGINT, status STRING, total_amount DECIMAL(38, 18),
  created_at TIMESTAMP(3), updated_at TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'store.orders',
  'properties.bootstrap.servers' = '127.0.0.1:9092', 'properties.group.id' = 'example-iceberg',
  'properties.isolation.level' = 'read_committed', -- or rows that were aborted come too
  'key.format' = 'avro-confluent', 'key.avro-confluent.url' = 'http://127.0.0.1:8081',
  'value.format' = 'avro-confluent', 'value.avro-confluent.url' = 'http://127.0.0.1:8081'
);

CREATE TABLE order_items (
  id BIGINT, order_id BIGINT, product_id BIGINT, sale_price DECIMAL(38, 18), quantity BIGINT,
  amount DECIMAL(38, 18),
  created_at TIMESTAMP(3), updated_at TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'store.order_items',
  'properties.bootstrap.servers' = '127.0.0.1:9092', 'properties.group.id' = 'example-iceberg',
  'properties.isolation.level' = 'read_committed', -- or rows that were aborted come too
  'key.format' = 'avro-confluent', 'key.avro-confluent.url' = 'http://127.0.0.1:8081',
  'value.format' = 'avro-confluent', 'value.avro-confluent.url' = 'http://127.0.0.1:8081'
);

CREATE TABLE products (
  id BIGINT, cost DECIMAL(38, 18), category STRING, name STRING, brand STRING,
  retail_price DECIMAL(38, 18), department STRING, sku STRING,
  created_at TIMESTAMP(3), updated_at TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'store.products',
  'properties.bootstrap.servers' = '127.0.0.1:9092', 'properties.group.id' = 'example-iceberg',
  'properties.isolation.level' = 'read_committed', -- or rows that were aborted come too
  'key.format' = 'avro-confluent', 'key.avro-confluent.url' = 'http://127.0.0.1:8081',
  'value.format' = 'avro-confluent', 'value.avro-confluent.url' = 'http://127.0.0.1:8081'
);

CREATE TABLE users (
  id BIGINT, first_name STRING, last_name STRING, email STRING, age BIGINT, gender STRING, state STRING,
  street_address STRING, postal_code STRING, city STRING, country STRING, latitude DOUBLE, longitude DOUBLE,
  traffic_source STRING,
  created_at TIMESTAMP(3), updated_at TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'store.users',
  'properties.bootstrap.servers' = '127.0.0.1:9092', 'properties.group.id' = 'example-iceberg',
  'properties.isolation.level' = 'read_committed', -- or rows that were aborted come too
  'key.format' = 'avro-confluent', 'key.avro-confluent.url' = 'http://127.0.0.1:8081',
  'value.format' = 'avro-confluent', 'value.avro-confluent.url' = 'http://127.0.0.1:8081'
);

CREATE TABLE shipments (
  id BIGINT, order_id BIGINT, shipped_at TIMESTAMP(3), delivered_at TIMESTAMP(3), returned_at TIMESTAMP(3),
  created_at TIMESTAMP(3), updated_at TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'store.shipments',
  'properties.bootstrap.servers' = '127.0.0.1:9092', 'properties.group.id' = 'example-iceberg',
  'properties.isolation.level' = 'read_committed', -- or rows that were aborted come too
  'key.format' = 'avro-confluent', 'key.avro-confluent.url' = 'http://127.0.0.1:8081',
  'value.format' = 'avro-confluent', 'value.avro-confluent.url' = 'http://127.0.0.1:8081'
);

-- A folder will do to try it. In production name the catalog that your other programs use ('rest', 'hive'):
-- with 'hadoop' two programs that write to one table need a file system whose rename is atomic.
CREATE CATALOG lake WITH (
  'type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file:///tmp/store-iceberg/warehouse'
);

CREATE DATABASE IF NOT EXISTS lake.store;

CREATE TABLE IF NOT EXISTS lake.store.orders WITH (
  'format-version' = '2', 'write.upsert.enabled' = 'true'
) LIKE orders (EXCLUDING OPTIONS);

CREATE TABLE IF NOT EXISTS lake.store.order_items WITH (
  'format-version' = '2', 'write.upsert.enabled' = 'true'
) LIKE order_items (EXCLUDING OPTIONS);

CREATE TABLE IF NOT EXISTS lake.store.products WITH (
  'format-version' = '2', 'write.upsert.enabled' = 'true'
) LIKE products (EXCLUDING OPTIONS);

CREATE TABLE IF NOT EXISTS lake.store.users WITH (
  'format-version' = '2', 'write.upsert.enabled' = 'true'
) LIKE users (EXCLUDING OPTIONS);

CREATE TABLE IF NOT EXISTS lake.store.shipments WITH (
  'format-version' = '2', 'write.upsert.enabled' = 'true'
) LIKE shipments (EXCLUDING OPTIONS);

EXECUTE STATEMENT SET BEGIN
INSERT INTO lake.store.orders SELECT * FROM orders;
INSERT INTO lake.store.order_items SELECT * FROM order_items;
INSERT INTO lake.store.products SELECT * FROM products;
INSERT INTO lake.store.users SELECT * FROM users;
INSERT INTO lake.store.shipments SELECT * FROM shipments;
END;
