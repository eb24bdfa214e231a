package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

// matrix measures a first load into Apache Kafka by what is written: compression, largest batch and number of
// partitions. Not by acks: a transaction takes acks=all. It is measured only if --only names it.
func matrix(ctx context.Context, r *round) error {
	if !slices.Contains(r.only, "matrix") {
		return nil
	}
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	n := r.large / 10
	name, err := db.tableOf(ctx, n)
	if err != nil {
		return err
	}
	for _, codec := range []string{"none", "snappy", "lz4", "zstd"} {
		for _, batch := range []int{256 << 10, 1 << 20, 4 << 20} {
			for _, partitions := range []int{1, 6} {
				settings := map[string]string{
					"kafka.compression":    codec,
					"kafka.partitions":     strconv.Itoa(partitions),
					"kafka.topic_settings": fmt.Sprintf("max.message.bytes=%d", batch),
				}
				l, err := loadTable(ctx, r, db, name, startApache, settings)
				if err != nil {
					return err
				}
				what := fmt.Sprintf("first load of %s orders into Apache Kafka, %s, batches of %d KiB, partitions %d: ",
					count(n), codec, batch>>10, partitions)
				r.add(figure{what: what + "CPU of all three programs a row", format: "%.2f us"},
					micros(l.cpu+l.pgCPU+l.brokerCPU)/l.rows)
			}
		}
	}
	return nil
}
