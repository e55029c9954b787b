import { ownValue } from '@tenon/api'
import type { ServerContext } from '../context.ts'
import { reviewResources, type VirtualResource } from '../authentication/reviews.ts'
import type { Served } from './registry.ts'

const objectVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

interface KindReference {
  readonly group: string
  readonly version: string
  readonly kind: string
}

interface SubresourceFacts {
  /** Kind of the bodies; absent if it is that of the object. */
  readonly kind?: KindReference
  readonly verbs: readonly string[]
}

const readWrite = ['get', 'patch', 'update']
const streaming = ['create', 'get']
const subresourceFacts: Readonly<Record<string, SubresourceFacts>> = {
  status: { verbs: readWrite },
  scale: { kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' }, verbs: readWrite },
  binding: { kind: { group: '', version: 'v1', kind: 'Binding' }, verbs: ['create'] },
  eviction: { kind: { group: 'policy', version: 'v1', kind: 'Eviction' }, verbs: ['create'] },
  token: { kind: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' }, verbs: ['create'] },
  finalize: { verbs: ['update'] },
  approval: { verbs: readWrite },
  log: { verbs: ['get'] },
  ephemeralcontainers: { verbs: readWrite },
  resize: { verbs: readWrite },
  exec: { kind: { group: '', version: 'v1', kind: 'PodExecOptions' }, verbs: streaming },
  attach: { kind: { group: '', version: 'v1', kind: 'PodAttachOptions' }, verbs: streaming },
  portforward: { kind: { group: '', version: 'v1', kind: 'PodPortForwardOptions' }, verbs: streaming },
}

/** A resource as both discovery formats need it. */
interface Listed {
  readonly name: string
  readonly singular: string
  readonly namespaced: boolean
  readonly kind: string
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly (SubresourceFacts & { readonly name: string })[]
}

interface ListedGroup {
  readonly name: string
  readonly versions: readonly string[]
}

/** Discovery documents. */
export class Discovery {
  readonly #ctx: ServerContext

  constructor(ctx: ServerContext) {
    this.#ctx = ctx
  }

  /** `/api`. */
  coreVersions(): object {
    return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }
  }

  /** `/apis`. */
  groupList(): object {
    return { kind: 'APIGroupList', apiVersion: 'v1', groups: this.#groups().map(groupDocument) }
  }

  /** `/apis/GROUP`; `undefined` when there is none. */
  group(name: string): object | undefined {
    const group = this.#groups().find((candidate) => candidate.name === name)
    return group === undefined ? undefined : { kind: 'APIGroup', apiVersion: 'v1', ...groupDocument(group) }
  }

  /** Whether the group has built-in kinds. */
  isBuiltIn(group: string): boolean {
    const isOfIt = (resource: { readonly group: string }) => resource.group === group
    return (
      reviewResources.some(isOfIt) ||
      this.#ctx.registry.all().some(({ crdName, definition }) => crdName === undefined && isOfIt(definition))
    )
  }

  /** `/api/v1` and `/apis/GROUP/VERSION`; `undefined` when there is none. */
  resources(group: string, version: string): object | undefined {
    const listed = this.#listed(group, version)
    if (listed.length === 0) return undefined
    return {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: group === '' ? version : `${group}/${version}`,
      resources: listed.flatMap((resource) => resourceDocuments(resource)),
    }
  }

  /** All resources in one document, for the core group or for all named groups. */
  aggregated(core: boolean, version: string): object {
    const groups = core ? [{ name: '', versions: ['v1'] }] : this.#groups()
    return {
      kind: 'APIGroupDiscoveryList',
      apiVersion: `apidiscovery.k8s.io/${version}`,
      metadata: {},
      items: groups.map((group) => ({
        metadata:
          group.name === '' ? { creationTimestamp: null } : { name: group.name, creationTimestamp: null },
        versions: group.versions.map((groupVersion) => ({
          version: groupVersion,
          freshness: 'Current',
          resources: this.#listed(group.name, groupVersion).map((resource) =>
            aggregatedDocument(resource, group.name, groupVersion),
          ),
        })),
      })),
    }
  }

  /** Named groups with their versions, preferred ones first. */
  #groups(): ListedGroup[] {
    const groups = new Map<string, string[]>()
    const add = (group: string, version: string) => {
      if (group === '') return
      const versions = groups.get(group) ?? []
      if (!versions.includes(version)) groups.set(group, [...versions, version])
    }
    for (const { definition } of this.#ctx.registry.all()) add(definition.group, definition.version)
    for (const { group, version } of reviewResources) add(group, version)
    return [...groups].map(([name, versions]) => ({ name, versions: versions.sort(byPriority) }))
  }

  #listed(group: string, version: string): Listed[] {
    const isHere = (resource: { readonly group: string; readonly version: string }) =>
      resource.group === group && resource.version === version
    const real = this.#ctx.registry.all().filter((served) => isHere(served.definition))
    const virtual = reviewResources.filter(isHere)
    return [...real.map(listedResource), ...virtual.map(listedReview)].sort((a, b) =>
      a.name < b.name ? -1 : 1,
    )
  }
}

/** Stable before beta before alpha, higher numbers first. */
function byPriority(a: string, b: string): number {
  const rank = (version: string): readonly number[] => {
    const [, major = '0', stage, minor = '0'] = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version) ?? []
    return [stage === undefined ? 2 : stage === 'beta' ? 1 : 0, Number(major), Number(minor)]
  }
  const left = rank(a)
  const right = rank(b)
  const at = left.findIndex((value, index) => value !== right[index])
  return at < 0 ? 0 : (right[at] as number) - (left[at] as number)
}

function groupDocument({ name, versions }: ListedGroup): object {
  const documents = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }))
  return { name, versions: documents, preferredVersion: documents[0] }
}

function listedResource(served: Served): Listed {
  const { definition } = served
  return {
    name: definition.plural,
    singular: definition.singular,
    namespaced: definition.namespaced,
    kind: definition.kind,
    verbs: definition.kind === 'Binding' ? ['create'] : objectVerbs,
    shortNames: definition.shortNames,
    categories: definition.categories,
    subresources: definition.subresources.flatMap((name) => {
      const facts = ownValue(subresourceFacts, name)
      return facts === undefined ? [] : [{ name, ...facts }]
    }),
  }
}

function listedReview(resource: VirtualResource): Listed {
  return {
    name: resource.plural,
    singular: resource.kind.toLowerCase(),
    namespaced: resource.namespaced,
    kind: resource.kind,
    verbs: ['create'],
    shortNames: [],
    categories: [],
    subresources: [],
  }
}

function resourceDocuments(resource: Listed): object[] {
  const { name, namespaced } = resource
  const main = {
    name,
    singularName: resource.singular,
    namespaced,
    kind: resource.kind,
    verbs: resource.verbs,
    ...(resource.shortNames.length === 0 ? {} : { shortNames: resource.shortNames }),
    ...(resource.categories.length === 0 ? {} : { categories: resource.categories }),
  }
  const rest = resource.subresources.map(({ name: subresource, kind, verbs }) => ({
    name: `${name}/${subresource}`,
    singularName: '',
    namespaced,
    ...(kind === undefined
      ? { kind: resource.kind }
      : { ...(kind.group === '' ? {} : { group: kind.group }), version: kind.version, kind: kind.kind }),
    verbs,
  }))
  return [main, ...rest]
}

function aggregatedDocument(resource: Listed, group: string, version: string): object {
  return {
    resource: resource.name,
    responseKind: { group, version, kind: resource.kind },
    scope: resource.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: resource.singular,
    verbs: resource.verbs,
    ...(resource.shortNames.length === 0 ? {} : { shortNames: resource.shortNames }),
    ...(resource.categories.length === 0 ? {} : { categories: resource.categories }),
    ...(resource.subresources.length === 0
      ? {}
      : {
          subresources: resource.subresources.map(({ name, kind, verbs }) => ({
            subresource: name,
            responseKind: kind ?? { group, version, kind: resource.kind },
            verbs,
          })),
        }),
  }
}
