/** Compares and applies the CustomResourceDefinitions. */
import type { Status } from '@tenon/api'
import { unifiedHunks } from '@tenon/api/unified-diff'
import { type Clock, readText, type Transport } from '@tenon/runtime'
import { stringify } from 'yaml'
import { CliError } from '../../errors.ts'

const collection = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const fieldManager = 'tenon'
const establishMs = 100
const establishAttempts = 300

/** The fields of a CustomResourceDefinition that are used here. */
interface Definition {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string }
  readonly spec?: {
    readonly group: string
    readonly versions?: readonly { readonly name: string; readonly served?: boolean }[]
  }
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

/** The effect of applying one definition. */
export interface CrdChange {
  readonly name: string
  /** `left`: another manager owns it and has a different version. */
  readonly kind: 'created' | 'configured' | 'unchanged' | 'left'
  /** Unified diff from the cluster's to ours; empty unless `configured`. */
  readonly hunks: string
  /** For `left`: who owns it and whether it is sufficient, in words. */
  readonly note?: string
}

/** Kinds of this group are shared: Cluster Autoscaler and Kueue install their definitions too. */
const sharedGroup = 'autoscaling.x-k8s.io'

export class CrdCluster {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /**
   * What {@link apply} would change. Uses a server-side dry run, so that defaults are not reported as
   * differences.
   * @param isForced as for {@link apply}.
   */
  async difference(crd: object, isForced: boolean): Promise<CrdChange> {
    const { metadata, spec } = crd as Definition
    const { name } = metadata
    const live = await this.#get(name)
    if (live === undefined) return { name, kind: 'created', hunks: '' }
    if (spec?.group === sharedGroup && !isForced) {
      const { status, body } = await this.#tryPatch(crd, { dryRun: 'All', force: 'false' })
      if (status === 409)
        return { name, kind: 'left', hunks: '', note: leftNote(crd, live, refusal(status, body)) }
    }
    const wanted = await this.#patch(crd, { dryRun: 'All', force: 'true' })
    const hunks = unifiedHunks(comparable(live), comparable(wanted))
    return { name, kind: hunks === '' ? 'unchanged' : 'configured', hunks }
  }

  /**
   * Applies a definition server-side.
   * @param isForced takes ownership of fields of other managers, such as Helm. Otherwise a shared definition
   * that others own is left as it is.
   * @throws CliError naming the definition and the conflict.
   */
  async apply(crd: object, isForced: boolean): Promise<CrdChange> {
    const change = await this.difference(crd, isForced)
    if (change.kind === 'left') return change
    await this.#patch(crd, { force: String(isForced) })
    return change
  }

  /**
   * Waits until the kind is served.
   * @throws CliError after half a minute.
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
    const { status, body } = await this.#tryPatch(crd, query)
    if (status === 409)
      throw new CliError(`${name}: ${refusal(status, body)}; --force-conflicts takes these fields over`)
    if (status >= 300) throw new CliError(`${name}: ${refusal(status, body)}`)
    return body as Definition
  }

  async #tryPatch(
    crd: object,
    query: Readonly<Record<string, string>>,
  ): Promise<{ readonly status: number; readonly body: unknown }> {
    const { name } = (crd as Definition).metadata
    const search = new URLSearchParams({ fieldManager, fieldValidation: 'Strict', ...query })
    return await this.#send('PATCH', `${collection}/${name}?${search.toString()}`, crd)
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

function leftNote(crd: object, live: Definition, conflict: string): string {
  const served = (live.spec?.versions ?? []).flatMap((each) => (each.served === false ? [] : [each.name]))
  const [ours] = (crd as Definition).spec?.versions ?? []
  const owners = `others own it (${conflict})`
  if (ours === undefined || served.includes(ours.name))
    return `${owners}; it serves ${ours?.name ?? 'nothing'}, which is enough`
  return `${owners}; it serves ${served.join(', ') || 'nothing'} and not ${ours.name}, which Tenon reads: update it where it comes from, or take it over with --force-conflicts`
}

/** Drops fields that the API server maintains. */
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
