"""Keeps the tables of store.db (SQLite) equal to storestream's topics, with Quix Streams.

    pip install -r requirements.txt
    BROKERS=127.0.0.1:9092 REGISTRY=http://127.0.0.1:8081 python app.py
"""

import datetime
import decimal
import os
import pathlib
import sqlite3

from quixstreams import Application
from quixstreams.models.serializers.avro import AvroDeserializer
from quixstreams.models.serializers.schema_registry import SchemaRegistryClientConfig
from quixstreams.sinks import BatchingSink, SinkBatch

RESOURCES = ["orders", "order_items", "products", "users", "shipments"]

sqlite3.register_adapter(decimal.Decimal, lambda number: format(number, "f"))
sqlite3.register_adapter(datetime.datetime, datetime.datetime.isoformat)


class Tables(BatchingSink):
    """Writes batches to SQLite. Offsets are committed after write has returned, never before."""

    def __init__(self, path: str):
        super().__init__()
        self.db = sqlite3.connect(path)
        self.db.executescript(pathlib.Path(__file__).with_name("tables.sql").read_text())

    def write(self, batch: SinkBatch):
        table = batch.topic.removeprefix("store.")
        known = {name for _, name, *_ in self.db.execute(f"PRAGMA table_info({table})")}
        for item in batch:
            row = item.value
            if row is None:  # a tombstone: the row is gone
                self.db.execute(f"DELETE FROM {table} WHERE id = ?", [item.key["id"]])
                continue
            # A field that the topic gets later is left out until the table has a column for it.
            row = {field: value for field, value in row.items() if field in known}
            columns, values = ", ".join(row), ", ".join("?" * len(row))
            upsert = f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({values})"
            self.db.execute(upsert, list(row.values()))
        self.db.commit()
        print(f"written: {batch.size} to {table}", flush=True)


app = Application(
    broker_address=os.environ.get("BROKERS", "127.0.0.1:9092"),
    consumer_group=os.environ.get("GROUP", "example-quix"),
    auto_offset_reset="earliest",
    consumer_extra_config={"isolation.level": "read_committed"},  # or rows that were aborted come too
)
registry = SchemaRegistryClientConfig(url=os.environ.get("REGISTRY", "http://127.0.0.1:8081"))
tables = Tables("store.db")
for resource in RESOURCES:
    avro = AvroDeserializer(schema_registry_client_config=registry)
    topic = app.topic("store." + resource, key_deserializer=avro, value_deserializer=avro)
    app.dataframe(topic).sink(tables)

if __name__ == "__main__":
    app.run()
