-- The tables of the examples that write to PostgreSQL.
CREATE TABLE IF NOT EXISTS orders (id bigint PRIMARY KEY, user_id bigint, status text,
  total_amount numeric(38, 18), created_at timestamptz, updated_at timestamptz);
CREATE TABLE IF NOT EXISTS order_items (id bigint PRIMARY KEY, order_id bigint, product_id bigint,
  sale_price numeric(38, 18), quantity bigint, amount numeric(38, 18), created_at timestamptz,
  updated_at timestamptz);
CREATE TABLE IF NOT EXISTS products (id bigint PRIMARY KEY, cost numeric(38, 18), category text, name text,
  brand text, retail_price numeric(38, 18), department text, sku text, created_at timestamptz,
  updated_at timestamptz);
CREATE TABLE IF NOT EXISTS users (id bigint PRIMARY KEY, first_name text, last_name text, email text,
  age bigint, gender text, state text, street_address text, postal_code text, city text, country text,
  latitude double precision, longitude double precision, traffic_source text, created_at timestamptz,
  updated_at timestamptz);
CREATE TABLE IF NOT EXISTS shipments (id bigint PRIMARY KEY, order_id bigint, shipped_at timestamptz,
  delivered_at timestamptz, returned_at timestamptz, created_at timestamptz, updated_at timestamptz);
