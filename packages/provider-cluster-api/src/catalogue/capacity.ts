/** The capacity of a MachineDeployment's nodes (cluster-api.md 5.2, 6). */
import { isQuantity, ownValue, parseResource, qualifiedNameProblem, type Resources, setOwn } from '@tenon/api'
import { capacityAnnotations } from '../names.ts'
import type { MachineDeployment } from '../objects.ts'
import type { Findings } from './findings.ts'
import type { TemplateFacts } from './template-facts.ts'

const defaultMaxPods = 110
/** Larger numbers are not exact. */
const mostUnits = 2 ** 53

type Annotations = MachineDeployment['metadata']['annotations']

/**
 * Capacity by resource; annotations override the template. Invalid quantities, and missing cpu or memory, are problems.
 */
export function capacityOf(
  { metadata: { annotations } }: MachineDeployment,
  facts: TemplateFacts | undefined,
  findings: Findings,
): Resources {
  const found: Record<string, number> = { ...facts?.capacity }
  for (const [resource, annotation] of [
    ['cpu', capacityAnnotations.cpu],
    ['memory', capacityAnnotations.memory],
    ['ephemeral-storage', capacityAnnotations.ephemeralDisk],
  ] as const) {
    const amount = amountIn(annotations, annotation, resource, findings)
    if (amount !== undefined) found[resource] = amount
  }
  // The template's number is that of its infrastructure provider; kubelets use 110 by default.
  found['pods'] = countIn(annotations, capacityAnnotations.maxPods, findings) ?? defaultMaxPods
  addGpus(annotations, found, findings)
  for (const resource of ['cpu', 'memory'] as const)
    if ((ownValue(found, resource) ?? 0) <= 0 && findings.problems.length === 0)
      findings.problems.push(
        `neither its infrastructure template nor annotation ${capacityAnnotations[resource]} specifies how much ${resource} its nodes have; set the annotation`,
      )
  return found
}

/** GPUs need both annotations: the number and the resource name. */
function addGpus(annotations: Annotations, found: Record<string, number>, findings: Findings): void {
  const count = countIn(annotations, capacityAnnotations.gpuCount, findings)
  const resource = ownValue(annotations, capacityAnnotations.gpuType) ?? ''
  if (count === undefined || resource === '') return
  const problem = qualifiedNameProblem(resource)
  if (problem === undefined) setOwn(found, resource, count)
  else
    findings.problems.push(
      `annotation ${capacityAnnotations.gpuType} names no resource: ${problem}; write one such as nvidia.com/gpu`,
    )
}

function amountIn(
  annotations: Annotations,
  annotation: string,
  resource: string,
  { problems }: Findings,
): number | undefined {
  const text = ownValue(annotations, annotation)
  if (text === undefined) return undefined
  const amount = isQuantity(text) ? parseResource(resource, text) : -1
  if (amount > 0 && amount <= mostUnits) return amount
  const example = resource === 'cpu' ? '4 or 3500m' : '16Gi'
  problems.push(
    `annotation ${annotation} is "${shortened(text)}", which is not a quantity of ${resource}; write a quantity such as ${example}`,
  )
  return undefined
}

/** Empty and zero values count as absent. */
function countIn(annotations: Annotations, annotation: string, { problems }: Findings): number | undefined {
  const text = ownValue(annotations, annotation) ?? ''
  if (text === '') return undefined
  const count = /^\d{1,9}$/.test(text) ? Number(text) : undefined
  if (count === undefined)
    problems.push(
      `annotation ${annotation} is "${shortened(text)}", which is not an integer; write one such as 8`,
    )
  return count === 0 ? undefined : count
}

/** Annotations may have any length. */
export function shortened(text: string): string {
  return text.length <= 63 ? text : `${text.slice(0, 60)}...`
}
