/** Checks manifests without a cluster, as the API server, the controller and the catalogue would. */
import {
  autoscalingKinds,
  type CapacityQuota,
  isRecord,
  karpenterKinds,
  type KubeObject,
  type NodeOverlay,
  type NodePool,
  readQuota,
  wellKnownLabels,
} from '@tenon/api'
import { type EligibilityPolicy, evaluateOverlaysInSteps, finished, type OfferedPool } from '@tenon/engine'
import {
  nameProblem,
  scheduleAnnotation,
  surgeAnnotationProblem,
  windowsAnnotation,
  windowsProblem,
} from '@tenon/operator/objects'
import { catalogueFindings } from './catalogue-check.ts'
import { placed, type PlacedObject, readText } from './documents.ts'
import { replacementOf } from './former-kinds.ts'
import { type OfflineProvider, serves } from './offline-provider.ts'
import { type Gates, overlayFindings, poolFindings } from './pool-check.ts'
import { type Finding, inOrder, type Problem } from './problem.ts'
import { SchemaChecker } from './schema-check.ts'
import { type SelectingController, selectionProblem } from '../../source/node-pool-selectors.ts'

/** A text to check; `file` is printed before every problem. */
export interface SourceText {
  readonly file: string
  readonly text: string
}

export interface ValidateOptions {
  /** CustomResourceDefinitions to check against. */
  readonly crds: readonly object[]
  readonly gates: Gates
  readonly providers: readonly OfflineProvider[]
  /** Controllers that share the cluster; empty if one serves all NodePools. */
  readonly controllers: readonly SelectingController[]
  /** Provider whose catalogue is used; default: that of the pool's node class. */
  readonly provider?: string
}

export interface Validation {
  readonly problems: readonly Problem[]
  /** Number of objects that were checked. */
  readonly checked: number
  /** Number of objects of other kinds. */
  readonly skipped: number
}

/** An object that the API server would accept, as written and as stored. */
interface Checked {
  readonly given: PlacedObject
  readonly stored: KubeObject
  readonly isAdmitted: boolean
}

const { nodeClaim, nodePool, nodeOverlay } = karpenterKinds

/** Checks all texts as one set of manifests. */
export function validate(sources: readonly SourceText[], options: ValidateOptions): Validation {
  const texts = sources.map(({ file, text }) => readText(file, text))
  const schemas = new SchemaChecker(options.crds)
  const problems: Problem[] = texts.flatMap((text) => text.problems)
  const checked: Checked[] = []
  const others: KubeObject[] = []
  let skipped = texts.reduce((sum, text) => sum + text.skipped, 0)
  for (const given of texts.flatMap((text) => text.objects)) {
    const result = schemas.check(given.object)
    if (result === undefined) {
      const former = formerKind(given, options.providers)
      if (former === undefined) {
        skipped++
        others.push(given.object)
        problems.push(...placed(given, workloadFindings(given.object)))
        problems.push(...placed(given, windowFindings(given.object)))
        for (const { catalogue } of options.providers)
          problems.push(...placed(given, catalogue.sourceFindingsOf?.(given.object) ?? []))
      }
      problems.push(...placed(given, former ?? []))
      continue
    }
    problems.push(...given.misread, ...placed(given, result.findings))
    const isAdmitted = !result.findings.some(({ severity }) => severity === 'error')
    checked.push({ given, stored: result.stored, isAdmitted })
  }
  for (const { catalogue } of options.providers) problems.push(...fileProblems(catalogue))
  problems.push(...duplicates(checked), ...ofKinds(checked, others, options))
  return { problems: inOrder(problems), checked: checked.length, skipped }
}

function fileProblems({ problems }: OfflineProvider['catalogue']): readonly Problem[] {
  return problems.map(({ file, message }) => ({
    file,
    line: 1,
    column: 1,
    severity: 'error',
    field: '',
    message,
  }))
}

function formerKind(
  { object }: PlacedObject,
  providers: readonly OfflineProvider[],
): readonly Finding[] | undefined {
  const { apiVersion, kind } = object
  const fix = replacementOf(
    apiVersion,
    kind,
    providers.map(({ module }) => module),
  )
  if (fix === undefined) return undefined
  return [{ severity: 'error', field: 'kind', message: `${kind} of ${apiVersion} is not served`, fix }]
}

function duplicates(checked: readonly Checked[]): readonly Problem[] {
  const first = new Map<string, PlacedObject>()
  return checked.flatMap(({ given }) => {
    const { apiVersion, metadata } = given.object
    if (metadata.name === undefined) return []
    const id = `${apiVersion} ${given.title}`
    const before = first.get(id)
    if (before === undefined) {
      first.set(id, given)
      return []
    }
    const { file, line } = before.placeOf('')
    const message = `given twice; the first is at ${file}:${line}`
    return placed(given, [{ severity: 'error', field: 'metadata.name', message }])
  })
}

function selectionFindings(pool: NodePool, controllers: readonly SelectingController[]): readonly Finding[] {
  const message = controllers.length === 0 ? undefined : selectionProblem(pool, controllers)
  return message === undefined ? [] : [{ severity: 'warning', field: 'metadata.labels', message }]
}

function ofKinds(
  checked: readonly Checked[],
  others: readonly KubeObject[],
  options: ValidateOptions,
): readonly Problem[] {
  const { providers } = options
  const admitted = checked.filter(({ isAdmitted }) => isAdmitted)
  const isOf = (type: { readonly group: string; readonly kind: string }) => (each: Checked) =>
    each.stored.kind === type.kind && each.stored.apiVersion.startsWith(`${type.group}/`)
  const nodeClasses = ({ module }: OfflineProvider) =>
    checked.filter((each) => module.nodeClasses.some((type) => isOf(type)(each)))
  const problems: Problem[] = providers.flatMap((provider) =>
    nodeClasses(provider)
      .filter(({ isAdmitted }) => isAdmitted)
      .flatMap(({ given, stored }) =>
        placed(given, [...nameFindings(stored), ...provider.catalogue.findingsOf(stored)]),
      ),
  )
  for (const { given, stored } of admitted.filter(isOf(nodeClaim)))
    problems.push(...placed(given, nameFindings(stored)))
  for (const { given, stored } of admitted.filter(isOf(autoscalingKinds.capacityQuota)))
    problems.push(...placed(given, quotaFindings(stored as CapacityQuota)))
  for (const { given, stored } of admitted.filter(isOf(autoscalingKinds.capacityBuffer))) {
    const problem = windowsProblem(stored.metadata, scheduleAnnotation)
    if (problem) problems.push(...placed(given, [{ severity: 'error', ...problem }]))
  }
  const offered: OfferedPool[] = []
  for (const { given, stored } of admitted.filter(isOf(nodePool))) {
    const pool = stored as NodePool
    const ref = pool.spec.template.spec.nodeClassRef
    const own = providers.find((each) => serves(each, ref))
    const asked = providers.find(({ module }) => module.name === options.provider)
    const rules = (own ?? asked)?.catalogue.rules ?? { wellKnownLabels: [] }
    const findings = [
      ...poolFindings(given.object, pool, rules, options.gates),
      ...selectionFindings(pool, options.controllers),
    ]
    const candidates = own === undefined ? [] : nodeClasses(own)
    findings.push(...referenceFindings(pool, own, candidates, providers))
    const choosable = asked ?? own
    if (choosable !== undefined && !findings.some(({ severity }) => severity === 'error')) {
      const nodeClass = candidates.find((each) => each.stored.metadata.name === ref.name && each.isAdmitted)
      const types = choosable.catalogue.typesOf(nodeClass?.stored, others)
      const { priceUnit } = choosable.catalogue
      offered.push({ nodePool: pool, instanceTypes: types.offered, priceUnit })
      if (types.isPartial !== true) findings.push(...catalogueFindings(pool, types, choosable.module.name))
    }
    problems.push(...placed(given, findings))
  }
  return [...problems, ...overlays(admitted.filter(isOf(nodeOverlay)), offered, options)]
}

/** The name becomes part of node names and the value of a label. */
function nameFindings({ metadata }: KubeObject): readonly Finding[] {
  return nameProblem('metadata.name', metadata.name).map((each) => ({ severity: 'error', ...each }))
}

/** Disruption windows of pods, of the templates of workloads, and of namespaces (wanted.md 5). */
function windowFindings(object: KubeObject): readonly Finding[] {
  const findings: Finding[] = []
  let [part, path]: [unknown, string] = [object, '']
  while (isRecord(part)) {
    const { metadata, spec } = part
    const problem = isRecord(metadata) && windowsProblem(metadata, windowsAnnotation, `${path}metadata`)
    if (problem) findings.push({ severity: 'error', ...problem })
    if (!isRecord(spec)) break
    const next = 'jobTemplate' in spec ? 'jobTemplate' : 'template'
    ;[part, path] = [spec[next], `${path}spec.${next}.`]
  }
  return findings
}

/** What the API server lets pass, and nobody enforces (quotas.md 1). */
function quotaFindings(quota: CapacityQuota): readonly Finding[] {
  const reading = readQuota(quota)
  if (reading.kind === 'read') return []
  const { field, problem, fix } = reading
  return [{ severity: 'error', field, message: `${problem}: the quota is not enforced`, fix }]
}

/** About the annotation that has a rollout replace pods before they are evicted (wanted.md 3). */
function workloadFindings(object: KubeObject): readonly Finding[] {
  if (object.apiVersion !== 'apps/v1' || object.kind !== 'Deployment') return []
  const problem = isRecord(object.metadata) ? surgeAnnotationProblem(object) : undefined
  return problem === undefined ? [] : [{ severity: 'error', ...problem }]
}

function referenceFindings(
  pool: NodePool,
  own: OfflineProvider | undefined,
  candidates: readonly Checked[],
  providers: readonly OfflineProvider[],
): readonly Finding[] {
  const { group, kind, name } = pool.spec.template.spec.nodeClassRef
  const field = 'spec.template.spec.nodeClassRef'
  if (own === undefined) {
    const message = `no provider of Tenon serves ${kind} of ${group}: the pool is left alone`
    const served = providers.flatMap(({ module }) => module.nodeClasses)
    const known = served.map((each) => `${each.kind} of ${each.group}`).join(' or ')
    return [{ severity: 'warning', field: `${field}.kind`, message, fix: `Tenon serves ${known}` }]
  }
  if (candidates.length === 0 || candidates.some(({ stored }) => stored.metadata.name === name)) return []
  const names = candidates.map(({ stored }) => stored.metadata.name).join(', ')
  return [
    {
      severity: 'error',
      field: `${field}.name`,
      message: `there is no ${kind} ${name} among the files`,
      fix: `they hold ${names}`,
    },
  ]
}

function overlays(
  given: readonly Checked[],
  offered: readonly OfferedPool[],
  { gates, providers }: ValidateOptions,
): readonly Problem[] {
  const objects = given.map(({ stored }) => stored as NodeOverlay)
  const rules = providers.map(({ catalogue }) => catalogue.rules)
  const policy: EligibilityPolicy = {
    wellKnownLabels: new Set([...wellKnownLabels, ...rules.flatMap((each) => each.wellKnownLabels)]),
    restrictedDomains: rules.flatMap((each) => each.restrictedDomains ?? []),
  }
  const { outcomes } = finished(evaluateOverlaysInSteps(objects, offered, policy))
  return given.flatMap(({ given: written, stored }) => {
    const outcome = outcomes.get(stored as NodeOverlay)
    return placed(written, overlayFindings(outcome, gates))
  })
}
