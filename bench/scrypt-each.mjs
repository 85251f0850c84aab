/** Preloaded into a server: adds one scrypt to each request, as if tokens were never cached. */
import { randomBytes, scrypt } from 'node:crypto'
import { Server } from 'node:http'

const salt = randomBytes(16)
const { emit } = Server.prototype
Server.prototype.emit = function (event, ...rest) {
  if (event !== 'request') return emit.call(this, event, ...rest)
  scrypt('a token', salt, 32, () => emit.call(this, event, ...rest))
  return true
}
