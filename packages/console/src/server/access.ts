/** Authenticates clients of the page (console.md 3): only the browser that opened the link has access. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { HttpRequest, Random } from '@tenon/runtime'

export type Admission =
  /** From a known browser. */
  | { readonly kind: 'admitted' }
  /** With the token of the link; `cookie` identifies the browser from now on. */
  | { readonly kind: 'admittedByToken'; readonly cookie: string }
  | { readonly kind: 'refused'; readonly status: 401 | 403; readonly message: string }

export type RequestHead = Pick<HttpRequest, 'headers' | 'method' | 'path'>

/** Maximum number of known browsers; the oldest is dropped. */
const mostSessions = 16
const loopbackNames: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])

/** Tokens and cookies of one server. */
export class Access {
  readonly #random: Random
  readonly #onTokenUsed: () => void
  /** All ports of a host share cookies, so each server uses its own name. */
  readonly #cookieName: string
  #token: string
  readonly #sessions: string[] = []

  /** @param onTokenUsed called when the link was used and {@link token} has changed. */
  constructor(random: Random, onTokenUsed: () => void = () => undefined) {
    this.#random = random
    this.#onTokenUsed = onTokenUsed
    this.#cookieName = `tenon-console-${hex(random, 1)}`
    this.#token = hex(random, 8)
  }

  /** The token of the next link; it can be used once. */
  get token(): string {
    return this.#token
  }

  /** Why a request is rejected, by its headers alone; does not use up its token. */
  refusalOf(request: RequestHead): Extract<Admission, { kind: 'refused' }> | undefined {
    const { headers, method } = request
    const problem = siteProblem(headers, method, loopbackAddress)
    if (problem !== undefined) return { kind: 'refused', status: 403, message: problem }
    if (this.#isKnown(headers['cookie']) || this.#bringsToken(request)) return undefined
    return {
      kind: 'refused',
      status: 401,
      message:
        'this address is opened by the link that the command prints, once; the command prints another one after each use',
    }
  }

  admit(request: RequestHead): Admission {
    const refusal = this.refusalOf(request)
    if (refusal !== undefined) return refusal
    if (this.#isKnown(request.headers['cookie'])) return { kind: 'admitted' }
    this.#token = hex(this.#random, 8)
    const session = hex(this.#random, 8)
    this.#sessions.push(session)
    if (this.#sessions.length > mostSessions) this.#sessions.shift()
    this.#onTokenUsed()
    return {
      kind: 'admittedByToken',
      cookie: `${this.#cookieName}=${session}; HttpOnly; SameSite=Strict; Path=/`,
    }
  }

  #bringsToken({ method, path }: RequestHead): boolean {
    const given = method === 'GET' ? URL.parse(path, 'http://127.0.0.1')?.searchParams.get('token') : null
    return given !== null && given !== undefined && isSame(given, this.#token)
  }

  #isKnown(cookies: string | undefined): boolean {
    const prefix = `${this.#cookieName}=`
    const given = (cookies ?? '').split(/; */).find((each) => each.startsWith(prefix))
    return given !== undefined && this.#sessions.some((each) => isSame(given.slice(prefix.length), each))
  }
}

/** Where a browser may find the page. */
export interface PageAddress {
  /** For messages. */
  readonly text: string
  /** The page's origin at a `Host`; undefined if the page is not there. */
  readonly originOf: (host: string) => string | undefined
}

export const loopbackAddress: PageAddress = {
  text: '127.0.0.1 or localhost',
  originOf: (host) =>
    loopbackNames.has(host.replace(/:\d+$/, '').toLowerCase()) ? `http://${host}` : undefined,
}

/** Why a request does not come from this server's own page; undefined if it may. */
export function siteProblem(
  headers: RequestHead['headers'],
  method: string,
  address: PageAddress,
): string | undefined {
  // With DNS rebinding, a foreign page reaches this server by another host name.
  const own = address.originOf(headers['host'] ?? '')
  if (own === undefined) return `the address has to be ${address.text}`
  const origin = headers['origin']
  if (origin !== undefined && origin !== own) return 'another site asks'
  const site = headers['sec-fetch-site']
  const isNavigation = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
  // A link on another site may lead here; without the token it shows nothing.
  if (site !== undefined && !['same-origin', 'none'].includes(site) && !(isNavigation && method === 'GET'))
    return 'another site asks'
  if (method !== 'GET' && origin === undefined) return 'requests that are no GET need an Origin'
  return undefined
}

/** In constant time. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}

/** 8 digits per word. */
function hex(random: Random, words: number): string {
  return Array.from({ length: words }, () => random.uint32().toString(16).padStart(8, '0')).join('')
}
