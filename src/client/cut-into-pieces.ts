/**
 * Size of a piece in bytes. It is smaller than the buffers of a connection, so a piece can be counted as sent when it
 * is read.
 */
const pieceBytes = 65_536

export function* cutIntoPieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let offset = 0; offset < bytes.length; offset += pieceBytes)
    yield bytes.subarray(offset, offset + pieceBytes)
}
