-- Keeps PostgreSQL tables equal to storestream's topics: sql-client.sh -f store.sql
-- pom.xml names the connectors that go into Flink's lib folder. In PostgreSQL, ../tables.sql makes the tables.
-- The task managers have to run in UTC (env.java.opts.taskmanager: -Duser.timezone=UTC), or times change.

CREATE TABLE orders (
  id BIGINT, user_id BIGINT, status STRING, total_amount DECIMAL(38, 18),
  created_at TIMESTAMP(3), updated_at TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'store.orders',
  'properties.bootstrap.servers' = '127.0.0.1:9092', 'properties.group.id' = 'example-flink',
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
  'properties.bootstrap.servers' = '127.0.0.1:9092', 'properties.group.id' = 'example-flink',
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
  'properties.bootstrap.servers' = '127.0.0.1:9092', 'properties.group.id' = 'example-flink',
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
  'properties.bootstrap.servers' = '127.0.0.1:9092', 'properties.group.id' = 'example-flink',
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
  'properties.bootstrap.servers' = '127.0.0.1:9092', 'properties.group.id' = 'example-flink',
  'properties.isolation.level' = 'read_committed', -- or rows that were aborted come too
  'key.format' = 'avro-confluent', 'key.avro-confluent.url' = 'http://127.0.0.1:8081',
  'value.format' = 'avro-confluent', 'value.avro-confluent.url' = 'http://127.0.0.1:8081'
);

CREATE TABLE pg_orders WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://127.0.0.1:5432/flink', 'table-name' = 'orders',
  'username' = 'postgres', 'password' = 'postgres'
) LIKE orders (EXCLUDING OPTIONS);

CREATE TABLE pg_order_items WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://127.0.0.1:5432/flink', 'table-name' = 'order_items',
  'username' = 'postgres', 'password' = 'postgres'
) LIKE order_items (EXCLUDING OPTIONS);

CREATE TABLE pg_products WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://127.0.0.1:5432/flink', 'table-name' = 'products',
  'username' = 'postgres', 'password' = 'postgres'
) LIKE products (EXCLUDING OPTIONS);

CREATE TABLE pg_users WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://127.0.0.1:5432/flink', 'table-name' = 'users',
  'username' = 'postgres', 'password' = 'postgres'
) LIKE users (EXCLUDING OPTIONS);

CREATE TABLE pg_shipments WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://127.0.0.1:5432/flink', 'table-name' = 'shipments',
  'username' = 'postgres', 'password' = 'postgres'
) LIKE shipments (EXCLUDING OPTIONS);

EXECUTE STATEMENT SET BEGIN
INSERT INTO pg_orders SELECT * FROM orders;
INSERT INTO pg_order_items SELECT * FROM order_items;
INSERT INTO pg_products SELECT * FROM products;
INSERT INTO pg_users SELECT * FROM users;
INSERT INTO pg_shipments SELECT * FROM shipments;
END;
