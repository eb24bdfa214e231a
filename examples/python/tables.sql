-- SQLite has no decimals and no times: both are text here, exact.
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, user_id INTEGER, status TEXT, total_amount TEXT,
  created_at TEXT, updated_at TEXT);
CREATE TABLE IF NOT EXISTS order_items (id INTEGER PRIMARY KEY, order_id INTEGER, product_id INTEGER,
  sale_price TEXT, quantity INTEGER, amount TEXT, created_at TEXT, updated_at TEXT);
CREATE TABLE IF NOT EXISTS products (id INTEGER PRIMARY KEY, cost TEXT, category TEXT, name TEXT, brand TEXT,
  retail_price TEXT, department TEXT, sku TEXT, created_at TEXT, updated_at TEXT);
CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, email TEXT,
  age INTEGER, gender TEXT, state TEXT, street_address TEXT, postal_code TEXT, city TEXT, country TEXT,
  latitude REAL, longitude REAL, traffic_source TEXT, created_at TEXT, updated_at TEXT);
CREATE TABLE IF NOT EXISTS shipments (id INTEGER PRIMARY KEY, order_id INTEGER, shipped_at TEXT,
  delivered_at TEXT, returned_at TEXT, created_at TEXT, updated_at TEXT);
