/** Reads infrastructure templates from the hub and caches them (cluster-api.md 6). */
import type { KubeObject, ResourceType } from '@tenon/api'
import { isKubeError, withDeadline } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import type { Hub } from '../hub/hub.ts'
import type { MachineDeployment, TemplateRef } from '../objects.ts'
import { factsIn, type InfrastructureTemplate, type TemplateFacts } from './template-facts.ts'

/** Templates rarely change, as Cluster API wants a new template instead. */
const refreshMs = 5 * 60_000
const retryMs = 60_000
/** The longest time that decisions wait for the first read of a template. */
const deadlineMs = 10_000
/** Maximum cached templates. */
const mostKept = 2000

/** The part of a CRD that lists served versions. */
interface Definition extends KubeObject {
  readonly spec?: { readonly versions?: readonly { readonly name?: string; readonly served?: boolean }[] }
}

const definitionKind: ResourceType<Definition> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}

/** The template of a MachineDeployment. */
interface TemplateName {
  readonly namespace: string
  readonly name: string
  readonly kind: string
  readonly group: string
  /** Absent if the reference does not name it. */
  readonly version?: string
}

interface Entry {
  readonly facts: TemplateFacts | undefined
  /** By {@link Clock.monotonic}; after that it is read again. */
  readonly staleMs: number
  readonly reading: Promise<TemplateFacts> | undefined
}

/** What the cache of templates needs. */
export interface TemplateDependencies {
  readonly hub: { readonly kube: Pick<Hub['kube'], 'get'> }
  /** Finds served versions and plurals without rights at cluster scope. Default: by CustomResourceDefinitions. */
  readonly discovery?: Pick<Hub['kube'], 'servedKinds' | 'servedVersions'>
  readonly clock: Clock
  readonly logger: Logger
}

/** Cached infrastructure templates of MachineDeployments. */
export class InfrastructureTemplates {
  readonly #deps: TemplateDependencies
  /** The least recently used first. */
  readonly #entries = new Map<string, Entry>()
  /** Invalid references, interned so that equal ones are the same object. */
  readonly #wrong = new Map<string, TemplateFacts>()

  constructor(deps: TemplateDependencies) {
    this.#deps = deps
  }

  /**
   * Facts about a MachineDeployment's template; undefined if it has none. A cached result is returned at once and
   * refreshed after some minutes; it stays while the hub is unreachable. The same object until it changes.
   */
  async factsOf(deployment: MachineDeployment): Promise<TemplateFacts | undefined> {
    const named = templateOf(deployment)
    if (named === undefined) return undefined
    if (typeof named === 'string') return this.#unusable(named)
    const id = JSON.stringify(named)
    const entry = this.#entries.get(id)
    const isFresh = entry !== undefined && this.#deps.clock.monotonic() < entry.staleMs
    const reading = isFresh ? undefined : (entry?.reading ?? this.#read(id, named, entry?.facts))
    if (entry !== undefined) this.#keep(id, this.#entries.get(id) ?? entry)
    return entry?.facts ?? (await reading)
  }

  #unusable(problem: string): TemplateFacts {
    const known = this.#wrong.get(problem)
    if (known !== undefined) return known
    if (this.#wrong.size >= mostKept) this.#wrong.clear()
    const facts: TemplateFacts = { capacity: {}, problem }
    this.#wrong.set(problem, facts)
    return facts
  }

  #read(id: string, named: TemplateName, before: TemplateFacts | undefined): Promise<TemplateFacts> {
    const reading = this.#outcome(named, before).then(({ facts, afterMs }) => {
      const isSame = before !== undefined && JSON.stringify(before) === JSON.stringify(facts)
      const kept = isSame ? before : facts
      if (!isSame && facts.problem !== undefined)
        this.#deps.logger.warn('an infrastructure template has no capacity', { because: facts.problem })
      this.#keep(id, {
        facts: kept,
        staleMs: this.#deps.clock.monotonic() + afterMs,
        reading: undefined,
      })
      return kept
    })
    this.#keep(id, { facts: before, staleMs: 0, reading })
    return reading
  }

  async #outcome(
    named: TemplateName,
    before: TemplateFacts | undefined,
  ): Promise<{ readonly facts: TemplateFacts; readonly afterMs: number }> {
    const { clock } = this.#deps
    const text = `${named.kind} ${named.namespace}/${named.name}`
    try {
      const late = () => new Error(`no response within ${deadlineMs / 1000} s`)
      const template = await withDeadline(clock, { ms: deadlineMs, late }, (signal) =>
        this.#get(named, signal),
      )
      if (template !== undefined) return { facts: factsIn(template), afterMs: refreshMs }
      const problem = `its infrastructure template ${text} does not exist`
      return { facts: { capacity: {}, problem }, afterMs: retryMs }
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      const problem = `its infrastructure template ${text} cannot be read: ${message}`
      const isKnown = before !== undefined && before.problem === undefined
      return { facts: isKnown ? before : { capacity: {}, problem }, afterMs: retryMs }
    }
  }

  async #get(named: TemplateName, signal: AbortSignal): Promise<InfrastructureTemplate | undefined> {
    const { kube } = this.#deps.hub
    const { namespace, name, kind, group } = named
    const { plural, version } = await this.#located(named, signal)
    const type: ResourceType<InfrastructureTemplate> = { group, version, kind, plural, namespaced: true }
    return await kube.get(type, { namespace, name }, { signal })
  }

  async #located(
    { kind, group, version: wanted }: TemplateName,
    signal: AbortSignal,
  ): Promise<{ readonly plural: string; readonly version: string }> {
    const { discovery } = this.#deps
    const usual = `${kind.toLowerCase()}s`
    if (discovery === undefined)
      return { plural: usual, version: wanted ?? (await this.#servedVersion(usual, group, signal)) }
    const found = await servedTemplate(discovery, { kind, group, ...(wanted && { version: wanted }) }, signal)
    if (found !== undefined) return found
    throw new Error(`the hub serves no ${kind} of ${group}${wanted === undefined ? '' : `/${wanted}`}`)
  }

  async #servedVersion(plural: string, group: string, signal: AbortSignal): Promise<string> {
    const name = `${plural}.${group}`
    const definition = await this.#deps.hub.kube
      .get(definitionKind, { name }, { signal })
      .catch((error: unknown) => {
        if (!isKubeError(error, 'forbidden')) throw error
        throw new Error(
          `no permission to read CustomResourceDefinition ${name} in the hub, which lists its versions; grant get on customresourcedefinitions`,
          { cause: error },
        )
      })
    const served = definition?.spec?.versions?.flatMap((each) =>
      each.served === true && each.name !== undefined ? [each.name] : [],
    )
    const version = preferredVersion(served ?? [])
    if (version === undefined) throw new Error(`the hub serves no version of ${name}`)
    return version
  }

  #keep(id: string, entry: Entry): void {
    this.#entries.delete(id)
    this.#entries.set(id, entry)
    for (const [oldest] of this.#entries) {
      if (this.#entries.size <= mostKept) return
      this.#entries.delete(oldest)
    }
  }
}

/** How the hub serves a kind of templates; undefined if it does not. */
export async function servedTemplate(
  discovery: Pick<Hub['kube'], 'servedKinds' | 'servedVersions'>,
  { kind, group, version: wanted }: Pick<TemplateName, 'kind' | 'group' | 'version'>,
  signal: AbortSignal,
): Promise<{ readonly plural: string; readonly version: string } | undefined> {
  const versions = wanted === undefined ? await discovery.servedVersions(group, { signal }) : [wanted]
  for (const version of versions) {
    const served = await discovery.servedKinds(group, version, { signal })
    const found = served.find((each) => each.kind === kind)
    if (found !== undefined) return { plural: found.plural, version }
  }
  return undefined
}

/** The template, the problem of the reference, or undefined if there is none. */
export function templateOf({ metadata, spec }: MachineDeployment): TemplateName | string | undefined {
  const ref = spec?.template?.spec?.infrastructureRef
  if (ref === undefined) return undefined
  const { kind = '', name = '' } = ref
  if (kind === '' || name === '')
    return 'spec.template.spec.infrastructureRef has no kind or no name, so no template is read'
  const { group, version } = groupOf(ref)
  if (group === '') return 'spec.template.spec.infrastructureRef has no API group, so no template is read'
  const { namespace = '' } = metadata
  return { namespace, name, kind, group, ...(version !== undefined && { version }) }
}

/** v1beta2 references name only the group, v1beta1 also the version. */
function groupOf({ apiGroup = '', apiVersion = '' }: TemplateRef): { group: string; version?: string } {
  const [group = '', version] = apiVersion.includes('/') ? apiVersion.split('/', 2) : [apiGroup]
  return { group, ...(version !== undefined && version !== '' && { version }) }
}

/** The version that Kubernetes prefers; undefined if none is served. */
export function preferredVersion(versions: readonly string[]): string | undefined {
  return versions.toSorted(compareVersions)[0]
}

/** `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`, then all others by name. */
function compareVersions(a: string, b: string): number {
  const [one, other] = [rankOf(a), rankOf(b)]
  for (let i = 0; i < one.length; i++) {
    const difference = (other[i] ?? 0) - (one[i] ?? 0)
    if (difference !== 0) return difference
  }
  return a < b ? -1 : 1
}

/** Stability, major and minor number. */
function rankOf(version: string): readonly [number, number, number] {
  const [, major, level, minor] = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version) ?? []
  if (major === undefined) return [0, 0, 0]
  const stability = level === undefined ? 3 : level === 'beta' ? 2 : 1
  return [stability, Number(major), Number(minor ?? 0)]
}
