package postgres

import (
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/storestream/storestream/schemas"
)

// A row may have a value of 1 GB, and no record may have more than 8 MiB. Such a row must not end this
// process, and must not make reading other rows slower. So:
//
//   - A connection accepts no message of more than maxMessage. A longer one ends it before memory is used.
//   - The rows are then read again with a SELECT list that replaces a long value by its length (cutLong). The
//     row becomes a dead letter.
//   - This list is used for guardTime after the last such row. Otherwise each poll that meets the row again
//     would break a connection.
const (
	// maxRow limits the bytes of a row's texts: a record has no room for more.
	maxRow = 8 << 20
	// maxMessage is maxRow with room for the rest of the message.
	maxMessage = maxRow + 1<<20
	guardTime  = 10 * time.Minute
	// widthColumn is a name that no table has.
	widthColumn = "storestream_row_bytes"
)

// cutLong returns t with a SELECT list that leaves out the long values of rows of more than maxRow. One more
// column has an array of the bytes that were left out, by column. It is NULL for a whole row.
//
// octet_length of a text reads only its head, even if it is compressed or stored out of line. But it counts
// bytes of the database's encoding. If that is not UTF-8, the text has to be converted.
func (t *table) cutLong() *table {
	var list, left []string // by column
	width := []string{"0"}
	for _, c := range t.columns {
		name, weight := pgx.Identifier{c.Name}.Sanitize(), 1
		var length string
		switch {
		case schemas.IsText(c.DataTypeOID):
			length = fmt.Sprintf("CASE WHEN getdatabaseencoding() IN ('UTF8', 'SQL_ASCII') "+
				"THEN octet_length(%[1]s) ELSE octet_length(convert_to(%[1]s, 'UTF8')) END", name)
		case schemas.IsUserType(c.DataTypeOID): // the binary form of some is several times as long
			length, weight = "octet_length("+name+"::text)", 8
		default:
			list, left = append(list, name), append(left, "0")
			continue
		}
		width = append(width, fmt.Sprintf("%d * coalesce(%s::bigint, 0)", weight, length))
		// If the width is too large, at least one value has more than its share of it.
		long := fmt.Sprintf("%s > %d AND %s > %d", widthColumn, maxRow, length, maxRow/8/len(t.columns))
		list = append(list, fmt.Sprintf("CASE WHEN %s THEN NULL ELSE %s END", long, name))
		left = append(left, fmt.Sprintf("CASE WHEN %s THEN %s ELSE 0 END", long, length))
	}
	list = append(list, fmt.Sprintf("CASE WHEN %s > %d THEN ARRAY[%s] END", widthColumn, maxRow,
		strings.Join(left, ", ")))
	g := *t
	g.list, g.cuts = strings.Join(list, ", "), true
	g.name += " CROSS JOIN LATERAL (SELECT " + strings.Join(width, " + ") + " AS " + widthColumn +
		" OFFSET 0) AS w" // OFFSET 0: computed once a row, not in each place that names it
	return &g
}

// leftOut reads the last column of cutLong's list. It returns the bytes that were left out, by column.
func leftOut(lengths []byte, columns int) []int {
	var left []int
	err := pgtype.NewMap().Scan(pgtype.Int4ArrayOID, pgtype.BinaryFormatCode, lengths, &left)
	if err != nil || len(left) != columns {
		return make([]int, columns)
	}
	return left
}
