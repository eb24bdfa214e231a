package producer

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// mostUnpacked limits the bytes of a batch before it is compressed. Our writers keep to it. A topic's
// max.message.bytes may be lower. A larger batch comes from another program, so readers step over it. Without
// the limit, 27 KB on a broker's disk become 900 MB in every instance, at every start.
const mostUnpacked = 8 << 20

// unpacker decompresses the batches of one answer. Their total is limited to the size of one batch: an answer
// of 256 KiB has room for a thousand small batches that each unpack to that size. The batch that exceeds the
// limit is refused, and fetched again. Every reader of a topic uses an unpacker.
type unpacker struct {
	kgo.Decompressor       // has the limit for one batch
	left             int   // bytes
	err              error // the reason why a batch was refused
}

// Decompress implements kgo.Decompressor. A batch that cannot be unpacked at all is refused like one that is
// too large. Its checksum was right, so it is as its writer sent it, and fetching it again does not help.
func (u *unpacker) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	records, err := u.Decompressor.Decompress(src, codec)
	if err == nil && len(records) > u.left && codec != kgo.CodecNone {
		err = fmt.Errorf("%d bytes are too many", len(records))
	}
	if err != nil {
		u.err = err
		// With this error, kgo reports the offset of the next batch.
		return nil, fmt.Errorf("%w: %w", kgo.ErrMaxDecompress, err)
	}
	u.left -= len(records)
	return records, nil
}
