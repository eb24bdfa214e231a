package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSegmentsAreCountedAndCompactionsTold(t *testing.T) {
	data := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("store.orders-0/00000000000000000000.log", "12345")
	write("store.orders-0/00000000000000000000.index", "1")
	write("store.orders-0/00000000000000000100.log", "123")
	write("store.orders-1/00000000000000000000.log", "1")
	write("store.order_items-0/00000000000000000000.log", "of another topic")
	write("cleaner-offset-checkpoint", "0\n3\nstore.orders 0 100\nstore.orders 1 0\nstore.order_items 0 7\n")
	l := watchLog(t.Context(), data, "store.orders")
	defer l.close()
	if n := l.begun(); n != 3 {
		t.Errorf("%d segments, want 3", n)
	}
	if records, _ := l.bytes(); records != 9 {
		t.Errorf("%d bytes of records, want 9", records)
	}
	at, records := l.compactions()
	if len(at) != 1 || records != 100 {
		t.Errorf("%d partitions compacted up to %d records, want partition 0 up to 100", len(at), records)
	}
	if err := os.Remove(filepath.Join(data, "store.orders-0/00000000000000000100.log")); err != nil {
		t.Fatal(err)
	}
	if n := l.begun(); n != 3 {
		t.Errorf("%d segments begun after one was compacted away, want 3", n)
	}
}
