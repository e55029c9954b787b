/** Labels of the nodes of a MachineDeployment (cluster-api.md 5.1, 6). */
import {
  capacityTypes,
  isLabelValue,
  karpenterGroup,
  labels,
  labelValueProblem,
  nodeClassLabel,
  normalizedLabel,
  ownValue,
  qualifiedNameProblem,
  setOwn,
} from '@tenon/api'
import { type ClusterApiNames, capacityAnnotations } from '../names.ts'
import { clusterAPINodeClassKind } from '../node-class.ts'
import type { MachineDeployment } from '../objects.ts'
import type { Findings } from './findings.ts'
import type { TemplateFacts } from './template-facts.ts'

/** Architectures that Kubernetes runs on. */
const architectures = ['amd64', 'arm64', 's390x', 'ppc64le'] as const

/** The architecture of nodes without an architecture label. */
export type Architecture = (typeof architectures)[number]

/** @param text value of `CAPI_SCALE_ZERO_DEFAULT_ARCH`; anything but an architecture counts as amd64. */
export function defaultArchitecture(text: string | undefined): Architecture {
  return architectures.find((each) => each === text) ?? 'amd64'
}

/** Where labels come from. */
export interface LabelSources {
  readonly deployment: MachineDeployment
  readonly facts: TemplateFacts | undefined
  readonly names: ClusterApiNames
  readonly architecture: Architecture
}

/** Entries of the labels annotation. Parts without `=` are ignored; later entries override earlier ones. */
export function parseLabels(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const part of text === '' ? [] : text.split(',')) {
    const at = part.indexOf('=')
    if (at >= 0) found.set(part.slice(0, at), part.slice(at + 1))
  }
  return found
}

/** Whether Cluster API copies a Machine's label to its Node. */
export function isPropagated(key: string, { group }: Pick<ClusterApiNames, 'group'>): boolean {
  const [domain = ''] = key.split('/', 1)
  if (domain === 'node-role.kubernetes.io') return true
  return ['node-restriction.kubernetes.io', `node.${group}`].some(
    (each) => domain === each || domain.endsWith(`.${each}`),
  )
}

/**
 * Labels of the nodes. If unknown, architecture, operating system, capacity type and instance type (the name of the
 * MachineDeployment) get defaults. Invalid labels are left out and reported.
 */
export function nodeLabelsOf(sources: LabelSources, findings: Findings): Readonly<Record<string, string>> {
  const { deployment, names } = sources
  const { template } = deployment.spec ?? {}
  const annotated = ownValue(deployment.metadata.annotations, capacityAnnotations.labels) ?? ''
  const found: Record<string, string> = { ...assumedLabels(sources, findings) }
  for (const [key, value] of Object.entries(template?.metadata?.labels ?? {}))
    if (isPropagated(key, names) && isOfNodes(key, names)) setOwn(found, key, value)
  for (const [written, value] of inOrderOfAge(parseLabels(annotated))) {
    const key = normalizedLabel(written)
    const problem = labelProblem(key, value, names)
    if (problem === undefined) setOwn(found, key, value)
    else findings.warnings.push(`annotation ${capacityAnnotations.labels}: ${problem}`)
  }
  checkCapacityType(found, findings)
  if (ownValue(found, labels.instanceType) === '') nameInstanceType(deployment, found, findings)
  return found
}

/** Defaults of labels. */
function assumedLabels(
  { deployment, facts, architecture }: LabelSources,
  findings: Findings,
): Readonly<Record<string, string>> {
  const domain = deployment.spec?.template?.spec?.failureDomain ?? ''
  if (!isLabelValue(domain))
    findings.warnings.push(`spec.template.spec.failureDomain "${domain}" cannot be the zone of a Node`)
  return {
    [labels.arch]: facts?.architecture ?? architecture,
    [labels.os]: facts?.operatingSystem ?? 'linux',
    [labels.capacityType]: capacityTypes.onDemand,
    [labels.instanceType]: '',
    ...(domain !== '' && isLabelValue(domain) && { [labels.zone]: domain }),
  }
}

/** Deprecated keys first, so that current ones override them. */
function inOrderOfAge(entries: ReadonlyMap<string, string>): readonly (readonly [string, string])[] {
  const isFormer = (key: string) => normalizedLabel(key) !== key
  return [...entries].toSorted(([a], [b]) => Number(isFormer(b)) - Number(isFormer(a)))
}

function labelProblem(key: string, value: string, names: ClusterApiNames): string | undefined {
  const problem = qualifiedNameProblem(key) ?? labelValueProblem(value)
  if (problem !== undefined) return `label "${key}" is left out: ${problem}`
  return isOfNodes(key, names) ? undefined : `label ${key} is ignored: Tenon sets it`
}

/**
 * Whether a MachineDeployment may set the label on its nodes. The member label is for Machines; some labels belong to
 * the core.
 */
function isOfNodes(key: string, { member }: ClusterApiNames): boolean {
  const reserved = [member, labels.hostname, nodeClassLabel(clusterAPINodeClassKind)]
  if (reserved.includes(key)) return false
  return key === labels.capacityType || !key.startsWith(`${karpenterGroup}/`)
}

function checkCapacityType(found: Readonly<Record<string, string>>, findings: Findings): void {
  const capacityType = ownValue(found, labels.capacityType)
  if (capacityType !== capacityTypes.onDemand && capacityType !== capacityTypes.spot)
    findings.problems.push(
      `annotation ${capacityAnnotations.labels}: ${labels.capacityType} is "${capacityType}"; write ${capacityTypes.onDemand} or ${capacityTypes.spot}`,
    )
}

/** A type needs a name that is a valid label value, as Nodes get it. */
function nameInstanceType(
  { metadata: { name } }: MachineDeployment,
  found: Record<string, string>,
  findings: Findings,
): void {
  const advice = `annotation ${capacityAnnotations.labels} with ${labels.instanceType}=TYPE`
  if (isLabelValue(name)) {
    found[labels.instanceType] = name
    findings.warnings.push(`its instance type has its name; set ${advice} to name it`)
  } else
    findings.problems.push(
      `it has no label ${labels.instanceType}, and a name of more than 63 characters cannot stand for one; give it ${advice}`,
    )
}
