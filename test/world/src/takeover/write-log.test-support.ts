/** Every request that changes something, as a transport sees it. */
import type { HttpRequest, Transport } from '@tenon/runtime'

/** One request that changes something. */
export interface Write {
  /** `PATCH nodeclaims/a/status`, without group, version and namespace. */
  readonly target: string
  /** Changed fields, such as `status.conditions`; labels and annotations with their keys. */
  readonly fields: readonly string[]
  readonly body: string
}

const single = new Set(['labels', 'annotations'])

/** Notes what goes through. */
export class WriteLog {
  readonly writes: Write[] = []

  /** The transport, listened to. */
  readonly listening = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      if (request.method !== 'GET') this.writes.push(writeOf(request))
      return await inner.send(request, signal)
    },
  })

  /** Distinct `TARGET FIELDS` lines of the writes to objects that `matches` picks, sorted. */
  lines(matches: (target: string) => boolean): readonly string[] {
    const lines = this.writes
      .filter(({ target }) => matches(target))
      .map(({ target, fields }) => [target, ...fields].join(' '))
    return [...new Set(lines)].toSorted()
  }
}

function writeOf({ method, path, body }: HttpRequest): Write {
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
  const [route = ''] = path.split('?')
  const parts = route.replace(/^\/(api\/v1|apis\/[^/]+\/[^/]+)\//, '').split('/')
  const target = parts[0] === 'namespaces' && parts.length > 2 ? parts.slice(2) : parts
  return {
    target: `${method} ${target.map(decodeURIComponent).join('/')}`,
    fields: method === 'PATCH' ? fieldsOf(JSON.parse(text) as object) : [],
    body: text,
  }
}

function fieldsOf(patch: object): readonly string[] {
  return Object.entries(patch)
    .flatMap(([part, value]) =>
      Object.entries((value ?? {}) as object)
        .filter(([field]) => field !== 'resourceVersion')
        .flatMap(([field, inner]) =>
          single.has(field)
            ? Object.keys((inner ?? {}) as object).map((key) => `${part}.${field}[${key}]`)
            : [`${part}.${field}`],
        ),
    )
    .toSorted()
}
