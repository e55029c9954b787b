/** Requests about NodeGroups to the API server: recorded, and subject to faults. */
import { apiVersionOf, ownValue, type Status } from '@tenon/api'
import { type Clock, type HttpRequest, type HttpResponse, oneChunk, type Transport } from '@tenon/runtime'
import { nodeGroupKind } from '@tenon/provider-clever-cloud'
import type { ApiEffect, ApiVerb, Faults } from './faults.ts'

export interface RecordedCall {
  readonly verb: ApiVerb
  /** Name of the group; empty for requests about all groups. */
  readonly name: string
  /** Such as `status`; empty if there is none. */
  readonly subresource: string
  /** Milliseconds since the Unix epoch. */
  readonly atMs: number
  /** Undefined if the response was lost. */
  readonly status: number | undefined
}

/** Minimum number of recorded calls. */
const mostCalls = 10_000

const path = new RegExp(
  `^/apis/${apiVersionOf(nodeGroupKind).replaceAll('.', '\\.')}/${nodeGroupKind.plural}(?:/([^/?]+))?(?:/([^/?]+))?(?:\\?(.*))?$`,
)

/** Records requests about NodeGroups and applies faults. */
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

  /** The same server with active faults. */
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
