import { gunzipSync } from 'node:zlib'
import { parse } from 'smol-toml'

/** What the guest agent reads from `settings.kubernetes`, by the keys of the document. */
export type KubernetesSettings = Readonly<Record<string, unknown>>

export type UserData =
  | { readonly kind: 'settings'; readonly kubernetes: KubernetesSettings }
  | { readonly kind: 'unreadable'; readonly reason: string }

/** Larger documents are refused, to bound memory. */
const longestDocument = 1 << 20

/** Decodes user data as the guest agent does: base64 of gzip, base64 of text, or text. */
export function decodeUserData(text: string | undefined): UserData {
  if (text === undefined) return { kind: 'unreadable', reason: 'no user data' }
  try {
    const document = parse(documentOf(text)) as { settings?: { kubernetes?: unknown } }
    const kubernetes = document.settings?.kubernetes
    if (typeof kubernetes !== 'object' || kubernetes === null) {
      return { kind: 'unreadable', reason: 'user data has no table settings.kubernetes' }
    }
    return { kind: 'settings', kubernetes: kubernetes as KubernetesSettings }
  } catch (error) {
    const cause = error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'unknown error'
    return { kind: 'unreadable', reason: `user data cannot be read: ${cause}` }
  }
}

function documentOf(text: string): string {
  const compact = text.trim()
  if (!/^[A-Za-z0-9+/\r\n]+={0,2}$/.test(compact)) return text
  const bytes = Buffer.from(compact, 'base64')
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b
  const plain = isGzip ? gunzipSync(bytes, { maxOutputLength: longestDocument }) : bytes
  return new TextDecoder('utf-8', { fatal: true }).decode(plain)
}
