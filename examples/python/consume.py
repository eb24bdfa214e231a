"""Keeps the tables of store.db (SQLite) equal to storestream's topics.

    pip install -r requirements.txt
    BROKERS=127.0.0.1:9092 REGISTRY=http://127.0.0.1:8081 python consume.py
"""

import collections
import datetime
import decimal
import os
import pathlib
import sqlite3
import time

from confluent_kafka import DeserializingConsumer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer

# By name: the pattern ^store\..* would also meet store.watermarks, which is JSON and no row.
TOPICS = ["store.orders", "store.order_items", "store.products", "store.users", "store.shipments"]

sqlite3.register_adapter(decimal.Decimal, lambda number: format(number, "f"))
sqlite3.register_adapter(datetime.datetime, datetime.datetime.isoformat)
db = sqlite3.connect("store.db")
db.executescript(pathlib.Path(__file__).with_name("tables.sql").read_text())


def columns_of(table):
    return {name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")}


# A field that topics get later is left out until its table has a column for it, and this is started again.
COLUMNS = {topic: columns_of(topic.removeprefix("store.")) for topic in TOPICS}

avro = AvroDeserializer(SchemaRegistryClient({"url": os.environ.get("REGISTRY", "http://127.0.0.1:8081")}))
consumer = DeserializingConsumer({
    "bootstrap.servers": os.environ.get("BROKERS", "127.0.0.1:9092"),
    "group.id": os.environ.get("GROUP", "example-python"),
    "isolation.level": "read_committed",  # or rows of transactions that were aborted come too
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,  # offsets are committed once the table has the rows, never before
    "key.deserializer": avro,
    "value.deserializer": avro,
})
consumer.subscribe(TOPICS)


def write(message):
    table = message.topic().removeprefix("store.")
    row = message.value()
    if row is None:  # a tombstone: the row is gone
        db.execute(f"DELETE FROM {table} WHERE id = ?", [message.key()["id"]])
        return
    row = {field: value for field, value in row.items() if field in COLUMNS[message.topic()]}
    columns, values = ", ".join(row), ", ".join("?" * len(row))
    db.execute(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({values})", list(row.values()))


# After a crash some rows come once more, which changes nothing: each is the whole row, under its id.
waiting, committed = collections.Counter(), time.monotonic()  # records by topic, and since when
try:
    while True:
        message = consumer.poll(1)
        if message is not None:
            write(message)
            waiting[message.topic()] += 1
        if waiting.total() == 1000 or waiting and time.monotonic() > committed + 1:
            db.commit()
            consumer.commit(asynchronous=False)
            print("written:", dict(waiting), flush=True)
            waiting.clear()
            committed = time.monotonic()
except KeyboardInterrupt:
    consumer.close()
