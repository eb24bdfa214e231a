package producer_test

import (
	"bytes"
	"errors"
	"hash/crc32"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy/xerial"
	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// bombs are batches of zeros, of every codec: 64 MiB in some kilobytes, or with snappy 16 MiB in 800.
func bombs() map[string]kmsg.RecordBatch {
	zeros, fewer := make([]byte, 64<<20), make([]byte, 16<<20)
	all := map[string]kmsg.RecordBatch{"snappy of Java": compressed(2, xerial.Encode(nil, oneRecord(fewer)))}
	for name, codec := range map[string]kgo.CompressionCodec{"gzip": kgo.GzipCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()} {
		compressor, err := kgo.DefaultCompressor(codec)
		if err != nil {
			panic(err)
		}
		packed, used := compressor.Compress(new(bytes.Buffer), oneRecord(zeros))
		all[name] = compressed(used, bytes.Clone(packed))
	}
	all["snappy"] = compressed(kgo.CodecSnappy, s2.EncodeSnappy(nil, oneRecord(fewer)))
	return all
}

// oneRecord is a batch's records: one, with the key orders and this value.
func oneRecord(value []byte) []byte {
	record := kmsg.Record{Key: []byte("orders"), Value: value}
	record.Length = int32(len(record.AppendTo(nil)) - 1)
	return record.AppendTo(nil)
}

func compressed(codec kgo.CompressionCodecType, records []byte) kmsg.RecordBatch {
	return kmsg.RecordBatch{PartitionLeaderEpoch: -1, Magic: 2, Attributes: int16(codec), FirstTimestamp: 1e12,
		MaxTimestamp: 1e12, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: 1, Records: records}
}

// writeBatch appends a batch to a partition of topic as it is.
func (s *stage) writeBatch(topic string, partition int32, batch kmsg.RecordBatch) {
	s.t.Helper()
	batch.Length = int32(len(batch.AppendTo(nil)) - 12)
	raw := batch.AppendTo(nil)
	batch.CRC = int32(crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, batch.AppendTo(nil)
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, part)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10_000
	req.Topics = append(req.Topics, t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.MaxVersions(kversion.V3_5_0())) // topics by name
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	s.send(s.ctx(), cl, req)
}

// Whoever may write to a topic can put 900 MB into 27 KB. Every reader of every topic steps over such a
// batch of any codec, names it, and goes on behind it.
func TestABatchThatUnpacksToMoreThanWeWriteIsSteppedOver(t *testing.T) {
	topics := []string{"store.orders", "store.dead_letters", "store.watermarks", "store.requests"}
	for codec, bomb := range bombs() {
		t.Run(codec, func(t *testing.T) {
			s := plainStage(t)
			session := s.take(s.cluster("a", nil))
			first := next(session, s.order(1, "2026-11-20T10:00:00Z", "Shipped"))
			first.DeadLetters = []watermark.DeadLetter{{Key: "orders/7", Row: []byte(`{"id":7}`)}}
			s.commit(session, first)
			for _, topic := range topics {
				s.writeBatch(topic, 0, bomb)
			}
			s.commit(session, next(session, s.order(2, "2026-11-20T10:00:00Z", "Shipped")))
			session.Close()

			logger, logs := observer.New(zapcore.WarnLevel)
			c := s.cluster("b", func(c *producer.Config) { c.Log = zap.New(logger) })
			before := allocated()
			session = s.take(c)
			asked, err := c.Requests().Ask(s.ctx(), watermark.Request{Resource: "orders", Kind: watermark.Sweeps})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Requests().CatchUp(s.ctx()); err != nil {
				t.Fatal(err)
			}
			if found := c.Requests().After("orders", -1, ""); len(found) != 1 || found[0].ID != asked.ID {
				t.Errorf("requests %v, expected the one that was asked for behind the batch", found)
			}
			if session.Watermark().Rows != 2 || len(session.DeadLetters()) != 1 {
				t.Errorf("the successor finds %d rows and the letters %v, expected 2 and one",
					session.Watermark().Rows, session.DeadLetters())
			}
			if got := s.rebuilt(session); len(got) != 2 {
				t.Errorf("rebuilt %v, expected rows 1 and 2", got)
			}
			unread, found := 0, 0
			second := func(id int64) bool { return id == 2 }
			_, err = producer.ReadTopic(s.ctx(), c, s.orders(), nil, second, func(p watermark.Published) error {
				if p.Unread {
					unread++
				} else if !p.Foreign {
					found++
				}
				return nil
			})
			if err != nil || unread != 1 || found != 1 {
				t.Errorf("a comparison hears of %d batches that were not read and %d records of row 2 (%v), "+
					"expected 1 and 1", unread, found, err)
			}
			rows, wrong := 0, 0
			for _, last := range []int{-1, 10} {
				for r, err := range producer.Tail(s.ctx(), c, s.orders(), last, false) {
					if err != nil {
						t.Error(err)
					}
					if rows++; r.Err != nil {
						wrong++
					}
				}
			}
			if rows != 6 || wrong != 2 {
				t.Errorf("tail gives %d records twice, %d of them unreadable: expected 6 and 2", rows, wrong)
			}
			watch := producer.NewWatch(c)
			if err := watch.Look(s.ctx()); err != nil || watch.Watermarks()["orders"].Rows != 2 {
				t.Errorf("the page shows %v (%v)", watch.Watermarks(), err)
			}
			if used := allocated() - before; used > 1<<30 {
				t.Errorf("%d MiB were allocated, as if some batch was unpacked", used>>20)
			}
			for _, topic := range topics {
				named := logs.FilterMessageSnippet("stepping over a batch").FilterField(zap.String("topic", topic))
				if named.Len() == 0 {
					t.Errorf("no line in the log names the batch in %s", topic)
				}
			}
		})
	}
}

// allocated is how many bytes this process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// A thousand small batches fit one answer, and each may unpack to a mebibyte. The answer is unpacked piece by
// piece, and every record is given.
func TestBatchesThatAreLargeTogetherAreAllRead(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	compressor, err := kgo.DefaultCompressor(kgo.ZstdCompression())
	if err != nil {
		t.Fatal(err)
	}
	const batches = 100
	packed, codec := compressor.Compress(new(bytes.Buffer), oneRecord(make([]byte, 900_000)))
	for range batches {
		s.writeBatch("store.orders", 0, compressed(codec, packed))
	}
	foreign := 0
	_, err = producer.ReadTopic(s.ctx(), c, s.orders(), nil, nil, func(p watermark.Published) error {
		if p.Foreign && !p.Unread {
			foreign++
		}
		return nil
	})
	if err != nil || foreign != batches {
		t.Errorf("%d records of %d were given (%v)", foreign, batches, err)
	}
}

// A batch of some bytes may ask for a window of 32 MiB to be unpacked with. It is stepped over as well.
func TestABatchThatTakesALargeWindowIsSteppedOver(t *testing.T) {
	s := plainStage(t)
	session := s.take(s.cluster("a", nil))
	s.commit(session, next(session, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed, zstd.WithWindowSize(32<<20))
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(oneRecord([]byte("not a watermark")))
	if err = errors.Join(err, w.Flush(), w.Close()); err != nil {
		t.Fatal(err)
	}
	batch := compressed(kgo.CodecZstd, packed.Bytes())
	s.writeBatch("store.watermarks", 0, batch)
	if got := s.take(s.cluster("b", nil)).Watermark().Rows; got != 1 {
		t.Errorf("the successor finds %d rows, expected 1", got)
	}
}

// The largest batches that an owner writes are read, whatever their codec.
func TestALargeBatchOfOursIsRead(t *testing.T) {
	for _, compression := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(compression, func(t *testing.T) {
			s := plainStage(t)
			c := s.cluster("a", func(c *producer.Config) {
				c.Compression, c.Partitions = compression, 1
				c.TopicSettings = map[string]string{"max.message.bytes": strconv.Itoa(10 << 20)}
			})
			session := s.take(c)
			var rows []schemas.Record
			for id := range int64(100) {
				rows = append(rows, s.order(id+1, "2026-11-20T10:00:00Z", strings.Repeat("x", 100_000)))
			}
			s.commit(session, next(session, rows...))
			if got := len(s.rebuilt(session)); got != len(rows) {
				t.Errorf("%d rows were rebuilt, expected %d", got, len(rows))
			}
		})
	}
}
