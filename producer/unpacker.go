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
	// mostState is how many bytes a batch of watermarks or requests has before it is compressed.
	mostState = 1 << 20
	// mostOfRows is the same of rows and dead letters. A topic may take less (max.message.bytes).
	mostOfRows = 8 << 20
)

// unpacker decompresses the batches of one answer, which together get no larger than one may: an answer of
// 256 KiB has room for a thousand small batches that each unpack to what one may. What goes beyond is
// refused, and asked for again. Every reader of a topic uses it.
type unpacker struct {
	left int // bytes
	// Of the batch that was refused: its codec, its bytes, and why.
	codec  kgo.CompressionCodecType
	packed int
	err    error
}

// Decompress is kgo.Decompressor's. A batch that cannot be unpacked at all is refused like one that is too
// large: it is as its writer sent it, for its checksum was right, so waiting does not mend it.
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
		return nil, fmt.Errorf("%w: %w", kgo.ErrMaxDecompress, err) // so we learn where the next batch begins
	}
	u.left -= len(records)
	return records, nil
}

// zstdReader is one for all: what it makes is bounded as a whole, and its memory used again. Its windows are
// bounded with it.
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

// snappyLen is how long src says that it gets. Java's writers put blocks of snappy behind a header, each
// behind its length.
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
