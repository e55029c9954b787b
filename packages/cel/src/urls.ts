import type { Environment } from '@marcbachmann/cel-js'

/** A URL, not normalized. */
class CelUrl {
  readonly scheme: string
  readonly host: string
  readonly path: string
  readonly query: string

  constructor(scheme: string, host: string, path: string, query: string) {
    this.scheme = scheme
    this.host = host
    this.path = path
    this.query = query
  }

  get hostname(): string {
    const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(this.host)
    if (bracketed !== null) return bracketed[1] ?? ''
    return this.host.replace(/:\d*$/, '')
  }

  get port(): string {
    return /:(\d*)$/.exec(this.host)?.[1] ?? ''
  }

  get escapedPath(): string {
    if (/^[A-Za-z0-9\-_.~!$&'()*+,;=:@[\]/%]*$/.test(this.path)) return this.path
    return Array.from(decodeURIComponent(this.path), (character) =>
      /[A-Za-z0-9\-_.~$&+,/:;=@]/.test(character) ? character : escaped(character),
    ).join('')
  }

  get parameters(): Map<string, string[]> {
    const found = new Map<string, string[]>()
    for (const [key, value] of new URLSearchParams(this.query)) {
      found.set(key, [...(found.get(key) ?? []), value])
    }
    return found
  }
}

function escaped(character: string): string {
  return encodeURIComponent(character).replace(
    /[!'()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

const form = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:(\/\/)([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?$/s
const badEscape = /%(?![0-9A-Fa-f]{2})/
const control = /[\u0000-\u001f\u007f]/ // oxlint-disable-line no-control-regex
const hostForm = /^(?:[^\s"<>\\^`{}|[\]:%]|%[0-9A-Fa-f]{2})*(?::\d*)?$/
const bracketedForm = /^\[[0-9A-Fa-f:.%\-_~A-Za-z]+\](?::\d*)?$/

/** Errors that need no parsing. */
function textError(text: string): string | undefined {
  if (text === '') return 'empty url'
  if (control.test(text)) return 'net/url: invalid control character in URL'
  return text.startsWith(':') ? 'missing protocol scheme' : undefined
}

/** Parses an absolute URL or path, or returns why it is invalid. */
function parseUrl(text: string): CelUrl | string {
  const failure = (words: string): string =>
    `URL parse error during conversion from string: parse ${JSON.stringify(text)}: ${words}`
  if (text === '*') return new CelUrl('', '', '*', '')
  const wrong = textError(text)
  if (wrong !== undefined) return failure(wrong)
  const [, scheme = '', slashes, authority = '', path = '', query = ''] = form.exec(text) ?? []
  if (scheme === '' && !text.startsWith('/')) return failure('invalid URI for request')
  // Without a scheme, everything up to the query is the path.
  if (scheme === '' && slashes !== undefined) {
    return badEscape.test(text) ? failure('invalid URL escape') : new CelUrl('', authority, path, query)
  }
  if (slashes === undefined && !path.startsWith('/')) return new CelUrl(scheme.toLowerCase(), '', '', query)
  const host = authority.slice(authority.lastIndexOf('@') + 1)
  if (!hostForm.test(host) && !bracketedForm.test(host)) return failure('invalid character in host name')
  if (badEscape.test(path)) return failure('invalid URL escape')
  return new CelUrl(scheme.toLowerCase(), host, path, query)
}

function urlOf(text: string): CelUrl {
  const parsed = parseUrl(text)
  if (typeof parsed === 'string') throw new Error(parsed)
  return parsed
}

/** Why the text is not a URL, or undefined. */
export function urlError(text: string): string | undefined {
  const parsed = parseUrl(text)
  return typeof parsed === 'string' ? parsed.replace(/^URL parse error[^:]*: /, '') : undefined
}

export function registerUrls(environment: Environment): void {
  const url = 'kubernetes.URL'
  environment
    .registerType(url, CelUrl)
    .registerFunction('isURL(string): bool', (text: string) => urlError(text) === undefined)
    .registerFunction(`url(string): ${url}`, urlOf)
    .registerFunction(`${url}.getScheme(): string`, (value: CelUrl) => value.scheme)
    .registerFunction(`${url}.getHost(): string`, (value: CelUrl) => value.host)
    .registerFunction(`${url}.getHostname(): string`, (value: CelUrl) => value.hostname)
    .registerFunction(`${url}.getPort(): string`, (value: CelUrl) => value.port)
    .registerFunction(`${url}.getEscapedPath(): string`, (value: CelUrl) => value.escapedPath)
    .registerFunction(`${url}.getQuery(): map<string, list<string>>`, (value: CelUrl) => value.parameters)
    .registerOperator(`${url} == ${url}`, (a: CelUrl, b: CelUrl) => sameUrl(a, b))
}

function sameUrl(a: CelUrl, b: CelUrl): boolean {
  return a.scheme === b.scheme && a.host === b.host && a.path === b.path && a.query === b.query
}
