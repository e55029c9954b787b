/** Makes a failing cluster small enough to read: omits whatever the failure does not need. */
import type { SchedulingInput } from '../../input/input.ts'

/** Fields without which an object is malformed rather than simpler. */
const needed: ReadonlySet<string> = new Set(
  (
    'apiVersion kind metadata spec name namespace uid containers template nodeClassRef group overhead ' +
    'requirements offerings capacity kubeReserved systemReserved evictionThreshold key operator values ' +
    'effect topologyKey maxSkew whenUnsatisfiable weight value podAffinityTerm preference nodeName ' +
    'matchExpressions nodeSelectorTerms pricePerHour available taints labels daemonRequests initialized ' +
    'usedHostPorts hostname isCandidate nodePool instanceTypes usage alternatives claims'
  ).split(' '),
)

/** Lists that mean something else, or nothing, when they are empty. */
const neverEmpty = new Set(['nodeSelectorTerms', 'matchExpressions', 'values', 'containers', 'offerings'])

/** Every value that lacks one list element or one field that may be missing, anywhere in it. */
function* simpler(value: unknown, name = ''): Generator {
  if (Array.isArray(value)) {
    if (value.length > 1 || !neverEmpty.has(name))
      for (const index of value.keys()) yield value.filter((_, at) => at !== index)
    // An offering without its zone or its capacity type is not one.
    if (name === 'offerings') return
    for (const [index, each] of value.entries())
      for (const less of simpler(each)) yield value.map((one: unknown, at) => (at === index ? less : one))
  } else if (typeof value === 'object' && value !== null && !(value instanceof Map || value instanceof Set)) {
    for (const [key, each] of Object.entries(value)) {
      if (!needed.has(key)) yield Object.fromEntries(Object.entries(value).filter(([other]) => other !== key))
      for (const less of simpler(each, key)) yield { ...value, [key]: less }
    }
  }
}

function* simplerInputs(input: SchedulingInput): Generator<SchedulingInput> {
  for (const part of ['pods', 'nodes', 'pools', 'daemons'] as const)
    for (const less of simpler(input[part])) yield { ...input, [part]: less }
  for (const pods of simpler(input.topology.pods))
    yield { ...input, topology: { ...input.topology, pods: pods as SchedulingInput['topology']['pods'] } }
}

/** @param tries most inputs to judge. */
export function smallest(
  input: SchedulingInput,
  isWrong: (input: SchedulingInput) => boolean,
  tries = 20_000,
): SchedulingInput {
  let current = input
  let left = tries
  for (let found = true; found; ) {
    found = false
    for (const candidate of simplerInputs(current)) {
      if (left-- <= 0) return current
      if (!judge(candidate, isWrong)) continue
      current = candidate
      found = true
      break
    }
  }
  return current
}

/** A candidate that breaks the judge itself is not a simpler case of the same failure. */
function judge(candidate: SchedulingInput, isWrong: (input: SchedulingInput) => boolean): boolean {
  try {
    return isWrong(candidate)
  } catch {
    return false
  }
}
