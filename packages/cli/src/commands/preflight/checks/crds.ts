/** Checks CustomResourceDefinitions: all exist, with the versions and fields of this release. */
import type { KubeObject, ResourceType } from '@tenon/api'
import { allCrds } from '../../../crds.ts'
import { builtInProviders } from '../../../providers.ts'
import { type Check, type CheckOutcome, few, type Finding, type PreflightContext } from '../check.ts'

export interface Definition extends KubeObject {
  readonly spec?: {
    readonly group?: string
    readonly versions?: readonly DefinitionVersion[]
    readonly conversion?: {
      readonly strategy?: string
      readonly webhook?: { readonly clientConfig?: { readonly service?: ServiceReference } }
    }
  }
  readonly status?: {
    readonly storedVersions?: readonly string[]
    readonly conditions?: readonly {
      readonly type: string
      readonly status: string
      readonly message?: string
    }[]
  }
}

/** The Service that a webhook calls. */
export interface ServiceReference {
  readonly namespace?: string
  readonly name?: string
}

interface DefinitionVersion {
  readonly name: string
  readonly served?: boolean
  readonly schema?: { readonly openAPIV3Schema?: Schema }
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
}

export const definitionKind: ResourceType<Definition> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}

/** Shared with others, and Tenon works without them. */
const ofOthers: ReadonlySet<string> = new Set([
  'capacityquotas.autoscaling.x-k8s.io',
  'provisioningrequests.autoscaling.x-k8s.io',
])

const install = 'helm upgrade --install karpenter-crd charts/tenon-crd, or tenon crds apply'
const upgrade = 'tenon crds diff shows the difference, tenon crds apply removes it'

export const crds: Check = {
  name: 'crds',
  run: async ({ kube, cloud }, signal) => {
    const wanted = await wantedDefinitions(cloud)
    const live = new Map(
      (await kube.list(definitionKind, { signal })).map((each) => [each.metadata.name, each]),
    )
    return judge(wanted, live)
  },
}

/** The definitions of the provider; of all providers if it is unknown. */
async function wantedDefinitions(cloud: PreflightContext['cloud']): Promise<readonly Definition[]> {
  const modules = cloud.kind === 'unknown' ? builtInProviders : [cloud.module]
  const all = (await allCrds(modules)) as readonly Definition[]
  return all.filter(({ metadata }) => !ofOthers.has(metadata.name))
}

function judge(wanted: readonly Definition[], live: ReadonlyMap<string, Definition>): CheckOutcome {
  const missing = wanted.map(({ metadata }) => metadata.name).filter((name) => !live.has(name))
  const summary = `${wanted.length} definitions are those of this release`
  if (missing.length === wanted.length)
    return {
      summary,
      findings: [{ status: 'warn', message: 'no CustomResourceDefinition is installed yet', fix: install }],
    }
  const absent: readonly Finding[] =
    missing.length === 0 ? [] : [{ status: 'fail', message: `missing: ${few(missing)}`, fix: install }]
  const present = wanted.flatMap((ours) => {
    const theirs = live.get(ours.metadata.name)
    return theirs === undefined ? [] : compared(ours, theirs)
  })
  return { summary, findings: [...absent, ...present] }
}

function compared(ours: Definition, theirs: Definition): readonly Finding[] {
  const { name } = ours.metadata
  const fail = (message: string, fix: string): Finding => ({
    status: 'fail',
    message: `${name}: ${message}`,
    fix,
  })
  const own = ours.spec?.versions ?? []
  const found = new Map((theirs.spec?.versions ?? []).map((version) => [version.name, version]))
  const findings: Finding[] = []
  for (const { name: version, schema } of own) {
    const live = found.get(version)
    if (live?.served !== true) findings.push(fail(`version ${version} is not served`, upgrade))
    else findings.push(...fieldFindings(name, schema?.openAPIV3Schema, live.schema?.openAPIV3Schema))
  }
  const known = new Set(own.map((version) => version.name))
  const left = (theirs.status?.storedVersions ?? []).filter((version) => !known.has(version))
  if (left.length > 0)
    findings.push(
      fail(
        `objects are stored in ${few(left)}, which this release does not know`,
        `write each object once (kubectl get ${name} -o yaml | kubectl replace -f -), then take ${few(left)} out of status.storedVersions`,
      ),
    )
  const established = theirs.status?.conditions?.find(({ type }) => type === 'Established')
  if (established !== undefined && established.status !== 'True')
    findings.push(fail(`is not established: ${established.message ?? ''}`, `kubectl describe crd ${name}`))
  return findings
}

/** Fields that only one of the two has. The API server drops fields that its definition lacks. */
function fieldFindings(
  name: string,
  ours: Schema | undefined,
  theirs: Schema | undefined,
): readonly Finding[] {
  const own = new Set(fieldsOf(ours))
  const live = new Set(fieldsOf(theirs))
  const lacking = outermost([...own].filter((field) => !live.has(field)))
  const stale = outermost([...live].filter((field) => !own.has(field)))
  return [
    ...(lacking.length === 0
      ? []
      : [{ status: 'fail' as const, message: `${name}: lacks the fields ${few(lacking)}`, fix: upgrade }]),
    ...(stale.length === 0
      ? []
      : [
          {
            status: 'warn' as const,
            message: `${name}: has the fields ${few(stale)} of another release`,
            fix: upgrade,
          },
        ]),
  ]
}

/** Paths, such as `spec.template.spec.taints[].key`. */
function fieldsOf(schema: Schema | undefined, path = ''): readonly string[] {
  if (schema === undefined) return []
  const below = Object.entries(schema.properties ?? {}).flatMap(([key, each]) => {
    const here = path === '' ? key : `${path}.${key}`
    return [here, ...fieldsOf(each, here)]
  })
  const values = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
  return [...below, ...fieldsOf(schema.items, `${path}[]`), ...fieldsOf(values, `${path}.*`)]
}

/** Drops fields that are below another one. */
function outermost(fields: readonly string[]): readonly string[] {
  const all = new Set(fields)
  return fields.filter((field) => {
    for (let at = field.search(/[.[][^.[]*$/); at > 0; at = field.slice(0, at).search(/[.[][^.[]*$/))
      if (all.has(field.slice(0, at))) return false
    return true
  })
}
