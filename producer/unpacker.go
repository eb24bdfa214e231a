package producer

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy/xerial"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// mostState limits the bytes of a batch of watermarks or requests before it is compressed.
	mostState = 1 << 20
	// mostOfRows is the same for rows and dead letters. A topic's max.message.bytes may be lower.
	mostOfRows = 8 << 20
)

// unpacker decompresses the batches of one answer. Their total is limited to the size of one batch: an answer
// of 256 KiB has room for a thousand small batches that each unpack to that size. The batch that exceeds the
// limit is refused, and fetched again. Every reader of a topic uses an unpacker.
type unpacker struct {
	left int // bytes
	// These describe the batch that was refused: its codec, its size in bytes, and the reason.
	codec  kgo.CompressionCodecType
	packed int
	err    error
}

// Decompress implements kgo.Decompressor. A batch that cannot be unpacked at all is refused like one that is
// too large. Its checksum was right, so it is as its writer sent it, and fetching it again does not help.
func (u *unpacker) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if codec == kgo.CodecNone {
		return src, nil
	}
	records, err := unpack(src, codec, u.left)
	if err == nil && len(records) > u.left {
		err = errors.New("too large")
	}
	if err != nil {
		u.codec, u.packed, u.err = codec, len(src), err
		// With this error, kgo reports where the next batch begins.
		return nil, fmt.Errorf("%w: %w", kgo.ErrMaxDecompress, err)
	}
	u.left -= len(records)
	return records, nil
}

// zstdReader is shared by all unpackers, so its memory is used again. The limit on its output also limits its
// windows.
var zstdReader = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(mostOfRows))
})

// unpack decompresses src. It stops soon after most bytes, and then returns more than most or an error.
func unpack(src []byte, codec kgo.CompressionCodecType, most int) ([]byte, error) {
	switch codec {
	case kgo.CodecGzip:
		r, err := gzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(r, int64(most)+1))
	case kgo.CodecSnappy:
		if n, err := snappyLen(src); err != nil || n > most {
			return nil, errors.Join(err, fmt.Errorf("it says that it has %d bytes", n))
		}
		return xerial.Decode(src)
	case kgo.CodecLz4:
		return io.ReadAll(io.LimitReader(lz4.NewReader(bytes.NewReader(src)), int64(most)+1))
	case kgo.CodecZstd:
		r, err := zstdReader()
		if err != nil {
			return nil, err
		}
		return r.DecodeAll(src, nil)
	}
	return nil, fmt.Errorf("unknown codec %d", codec)
}

// snappyLen returns the length that src declares for its content. Java's writers put a header first, and then
// blocks of snappy, each after its length.
func snappyLen(src []byte) (int, error) {
	const header = 16
	if len(src) < header || !bytes.HasPrefix(src, []byte("\x82SNAPPY\x00")) {
		return s2.DecodedLen(src)
	}
	all := 0
	for src = src[header:]; len(src) >= 4; {
		size := int64(binary.BigEndian.Uint32(src))
		if src = src[4:]; size > int64(len(src)) {
			return 0, xerial.ErrMalformed
		}
		n, err := s2.DecodedLen(src[:size])
		if err != nil {
			return 0, err
		}
		all, src = all+n, src[size:]
	}
	return all, nil
}

// codecName is the name of a codec in Kafka's settings.
func codecName(codec kgo.CompressionCodecType) string {
	switch codec {
	case kgo.CodecGzip:
		return "gzip"
	case kgo.CodecSnappy:
		return "snappy"
	case kgo.CodecLz4:
		return "lz4"
	case kgo.CodecZstd:
		return "zstd"
	}
	return fmt.Sprintf("codec %d", codec)
}
