/** Returns a vector as text: 32-bit floats, little-endian, in base64. */
export function encodeVectorText(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
}

/** Returns the vector of a text that {@link encodeVectorText} created. */
export function decodeVectorText(text: string): Float32Array {
  return new Float32Array(new Uint8Array(Buffer.from(text, 'base64')).buffer)
}
