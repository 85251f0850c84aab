/**
 * Size of a piece in bytes. It is smaller than the buffers of a connection, so a consumed piece has
 * practically been sent.
 */
const pieceBytes = 65_536

export function* cutIntoPieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}
