package postgres

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func wireMessage(kind byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

// However the bytes come, all of them are passed on, and only ParameterStatus counts.
func TestSettingsThatAServerNamesAreBoundedAndNothingElseIs(t *testing.T) {
	setting := wireMessage('S', "p\x00"+strings.Repeat("x", 1021)+"\x00")
	row := wireMessage('D', strings.Repeat("S", 500))
	const fit = maxTalk / 1029
	for name, chunks := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
		"in halves": iotest.HalfReader,
	} {
		good := bytes.Repeat(append(bytes.Clone(setting), row...), fit)
		got, err := io.ReadAll(&talkBound{server: chunks(bytes.NewReader(good)), loggedIn: true})
		if err != nil || !bytes.Equal(got, good) {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(good), err)
		}
		_, err = io.ReadAll(&talkBound{loggedIn: true, server: chunks(io.MultiReader(
			bytes.NewReader(good), bytes.NewReader(setting)))})
		if err == nil || !strings.Contains(err.Error(), "or as settings") {
			t.Errorf("%s: %v", name, err)
		}
	}
	hostile := bytes.Repeat([]byte{'S', 0, 0, 0, 0}, 100) // a length that is none
	got, err := io.ReadAll(&talkBound{server: bytes.NewReader(hostile), loggedIn: true})
	if err != nil || len(got) != 500 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// Before the login everything counts, and a length is refused before the bytes come.
func TestWhatAServerSaysBeforeTheLoginIsBounded(t *testing.T) {
	small, ready := wireMessage('N', strings.Repeat("x", 1019)), wireMessage('Z', "I")
	for name, c := range map[string]struct {
		said []byte
		fits bool
	}{
		"few notices":           {bytes.Repeat(small, 1000), true},
		"many notices":          {bytes.Repeat(small, 1025), false},
		"a long one":            {[]byte{'N', 0x40, 0, 0, 0}, false},
		"rows after the login":  {append(bytes.Clone(ready), bytes.Repeat(small, 2000)...), true},
		"a login after a login": {bytes.Repeat(append(bytes.Repeat(small, 900), ready...), 3), true},
	} {
		_, err := io.ReadAll(&talkBound{server: iotest.HalfReader(bytes.NewReader(c.said))})
		if (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
