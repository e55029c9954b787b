/** Requests about NodeGroups on their way to the API server: recorded, and struck by faults. */
import { apiVersionOf, ownValue, type Status } from '@tenon/api'
import { type Clock, type HttpRequest, type HttpResponse, oneChunk, type Transport } from '@tenon/runtime'
import { nodeGroupKind } from '@tenon/provider-clever-cloud'
import type { ApiEffect, ApiVerb, Faults } from './faults.ts'

/** A request about NodeGroups. */
export interface RecordedCall {
  readonly verb: ApiVerb
  /** Name of the group, or empty for requests about all of them. */
  readonly name: string
  /** Such as `status`, or empty. */
  readonly subresource: string
  /** Milliseconds since the Unix epoch. */
  readonly atMs: number
  /** Undefined when no answer came back. */
  readonly status: number | undefined
}

/** Calls that are kept at least. */
const mostCalls = 10_000

const path = new RegExp(
  `^/apis/${apiVersionOf(nodeGroupKind).replaceAll('.', '\\.')}/${nodeGroupKind.plural}(?:/([^/?]+))?(?:/([^/?]+))?(?:\\?(.*))?$`,
)

/** What passes between a client and the API server, as far as it is about NodeGroups. */
export class Requests {
  readonly #faults: Faults
  readonly #clock: Clock
  #calls: RecordedCall[] = []

  constructor(faults: Faults, clock: Clock) {
    this.#faults = faults
    this.#clock = clock
  }

  /** Oldest first. */
  calls(): readonly RecordedCall[] {
    return [...this.#calls]
  }

  /** The same server, with the faults in force on the way. */
  through(server: Transport): Transport {
    return {
      send: async (request, signal) => {
        const call = callIn(request)
        if (call === undefined) return await server.send(request, signal)
        const atMs = this.#clock.now()
        const effects = this.#faults.api
          .draw(({ verb }) => verb === '*' || verb === call.verb)
          .map(({ effect }) => effect)
        try {
          const response = await answer(effects, () => server.send(request, signal))
          this.#record({ ...call, atMs, status: response.status })
          return response
        } catch (error) {
          this.#record({ ...call, atMs, status: undefined })
          throw error
        }
      },
    }
  }

  #record(call: RecordedCall): void {
    this.#calls.push(call)
    if (this.#calls.length > 2 * mostCalls) this.#calls = this.#calls.slice(-mostCalls)
  }
}

async function answer(
  effects: readonly ApiEffect[],
  send: () => Promise<HttpResponse>,
): Promise<HttpResponse> {
  if (effects.some(({ kind }) => kind === 'lostRequest')) throw new Error('the connection was reset')
  const refusal = effects.find((effect) => effect.kind === 'refuse')
  if (refusal !== undefined) return refused(refusal)
  const response = await send()
  if (effects.some(({ kind }) => kind === 'lostReply')) throw new Error('the connection was reset')
  return response
}

function refused({ status, reason, message }: Extract<ApiEffect, { kind: 'refuse' }>): HttpResponse {
  const body: Status = {
    apiVersion: 'v1',
    kind: 'Status',
    metadata: {},
    status: 'Failure',
    code: status,
    reason,
    message,
  }
  const headers = { 'content-type': 'application/json' }
  return { status, headers, body: oneChunk(JSON.stringify(body)) }
}

const verbs: Readonly<Record<string, ApiVerb>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

function callIn(request: HttpRequest): Pick<RecordedCall, 'verb' | 'name' | 'subresource'> | undefined {
  const match = path.exec(request.path)
  if (match === null) return undefined
  const [, name = '', subresource = '', query = ''] = match
  const isWatch = ['true', '1'].includes(new URLSearchParams(query).get('watch') ?? '')
  const read = isWatch ? 'watch' : name === '' ? 'list' : 'get'
  return { verb: ownValue(verbs, request.method) ?? read, name: decodeURIComponent(name), subresource }
}
