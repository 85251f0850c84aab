/** Small beside the buffers of a connection, so that what was taken has nearly left. */
const pieceBytes = 65_536

/** Bytes piece by piece. */
export function* inPieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}
