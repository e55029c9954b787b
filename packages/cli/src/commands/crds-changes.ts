/** The changes that applying the CustomResourceDefinitions makes to a cluster. */
import type { Status } from '@tenon/api'
import { type Clock, readText, type Transport } from '@tenon/runtime'
import { stringify } from 'yaml'
import { CliError } from '../errors.ts'
import { unifiedHunks } from './crds-line-diff.ts'

const collection = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const fieldManager = 'tenon'
const establishMs = 100
const establishAttempts = 300

/** A CustomResourceDefinition, as far as it is looked at. */
interface Definition {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string }
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

/** What applying one definition comes to. */
export interface CrdChange {
  readonly name: string
  readonly kind: 'created' | 'configured' | 'unchanged'
  /** Unified diff from the cluster's to ours; empty unless `configured`. */
  readonly hunks: string
}

/** Applies definitions server-side to one cluster. */
export class CrdCluster {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** What {@link apply} would change; the API server works it out, so that its defaults are no difference. */
  async difference(crd: object): Promise<CrdChange> {
    const { name } = (crd as Definition).metadata
    const live = await this.#get(name)
    if (live === undefined) return { name, kind: 'created', hunks: '' }
    const wanted = await this.#patch(crd, { dryRun: 'All', force: 'true' })
    const hunks = unifiedHunks(comparable(live), comparable(wanted))
    return { name, kind: hunks === '' ? 'unchanged' : 'configured', hunks }
  }

  /**
   * Applies a definition.
   * @param isForced takes fields over that another manager, such as Helm, owns.
   * @throws CliError naming the definition and what is in the way.
   */
  async apply(crd: object, isForced: boolean): Promise<CrdChange> {
    const change = await this.difference(crd)
    await this.#patch(crd, { force: String(isForced) })
    return change
  }

  /**
   * Waits until the kind of the definition is served.
   * @throws CliError when it is not within half a minute.
   */
  async established(name: string, clock: Clock, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; attempt < establishAttempts; attempt++) {
      const conditions = (await this.#get(name))?.status?.conditions ?? []
      if (conditions.some(({ type, status }) => type === 'Established' && status === 'True')) return
      await clock.sleep(establishMs, signal)
    }
    throw new CliError(`${name}: not established after ${(establishMs * establishAttempts) / 1000} s`)
  }

  async #get(name: string): Promise<Definition | undefined> {
    const { status, body } = await this.#send('GET', `${collection}/${name}`)
    if (status === 404) return undefined
    if (status >= 300) throw new CliError(`${name}: ${refusal(status, body)}`)
    return body as Definition
  }

  async #patch(crd: object, query: Readonly<Record<string, string>>): Promise<Definition> {
    const { name } = (crd as Definition).metadata
    const search = new URLSearchParams({ fieldManager, fieldValidation: 'Strict', ...query })
    const { status, body } = await this.#send('PATCH', `${collection}/${name}?${search.toString()}`, crd)
    if (status === 409)
      throw new CliError(`${name}: ${refusal(status, body)}; --force-conflicts takes these fields over`)
    if (status >= 300) throw new CliError(`${name}: ${refusal(status, body)}`)
    return body as Definition
  }

  async #send(
    method: string,
    path: string,
    object?: object,
  ): Promise<{ readonly status: number; readonly body: unknown }> {
    const response = await this.#transport.send({
      method,
      path,
      headers: {
        accept: 'application/json',
        ...(object !== undefined && { 'content-type': 'application/apply-patch+yaml' }),
      },
      ...(object !== undefined && { body: JSON.stringify(object) }),
    })
    const text = await readText(response.body)
    return { status: response.status, body: parsed(text) }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return { message: text.slice(0, 200).trim() }
  }
}

function refusal(status: number, body: unknown): string {
  const { message } = body as Partial<Status>
  return message === undefined || message === '' ? `the API server answered ${status}` : message
}

/** Without what the API server notes on its own. */
function comparable(definition: Definition): string {
  const { status: _, metadata, ...rest } = definition as Definition & Record<string, unknown>
  const { name, labels, annotations } = metadata as Record<string, unknown>
  const kept = {
    name,
    ...(labels !== undefined && { labels }),
    ...(annotations !== undefined && { annotations }),
  }
  return stringify(
    { ...rest, metadata: kept },
    { lineWidth: 0, aliasDuplicateObjects: false, sortMapEntries: true },
  )
}
