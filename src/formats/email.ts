import PostalMime, { type Address } from 'postal-mime'
import { dayOf, type FileText, tidy, titleOf, unreadable } from './file-text.ts'
import { convertHtml } from './html.ts'

/** Maximum number of messages of a mailbox. */
const messagesMax = 100_000

/** Returns the subject, sender, recipients, date and text of a message. @throws extraction_failed  the message is damaged */
export async function readEmail(bytes: Uint8Array): Promise<FileText> {
  try {
    const { subject, from, to, cc, date, text, html, attachments } = await PostalMime.parse(
      Buffer.from(bytes),
    )
    const title = titleOf(subject)
    const head = [
      ['From', addressesOf(from ? [from] : [])],
      ['To', addressesOf(to)],
      ['Cc', addressesOf(cc)],
      ['Date', date?.replace(/\.000Z$/, 'Z')],
      [
        'Attachments',
        attachments
          .map(({ filename }) => filename)
          .filter(Boolean)
          .join(', '),
      ],
    ].flatMap(([name, value]) => (value ? [`${name}: ${value}`] : []))
    const body = html ? convertHtml(html).text : (text ?? '')
    return {
      text: tidy([title ? `# ${title}` : '', head.join('\n'), body].join('\n\n')),
      title,
      author: titleOf(addressesOf(from ? [from] : [])),
      date: dayOf(date),
    }
  } catch (error) {
    throw unreadable('is a damaged message', undefined, error)
  }
}

function addressesOf(addresses: readonly Address[] = []): string {
  return addresses
    .flatMap(entry => (entry.group ? entry.group : [entry]))
    .map(({ name, address }) => (name ? `${name} <${address}>` : address))
    .join(', ')
}

/** Returns the messages of a mailbox (mbox). @throws extraction_failed  a message is damaged, or there are too many */
export async function readMailbox(bytes: Uint8Array): Promise<FileText> {
  // Latin-1 keeps each byte, because each message has its own encoding.
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  const messages = source.split(/^From .*\r?\n/m).filter(message => message.trim() !== '')
  if (messages.length > messagesMax)
    throw unreadable(`contains more than ${messagesMax} messages`, 'Split it.')
  const texts: string[] = []
  for (const message of messages) {
    const { text } = await readEmail(Buffer.from(message.replace(/^>(>*From )/gm, '$1'), 'latin1'))
    texts.push(text)
  }
  return { text: texts.join('\n\n'), title: null }
}
