/** Prints one run: lines for people, one JSON object for programs. */
import type { Outcome } from '../../conformance/src/planned-placement/stand.ts'
import { lowerBoundPerHour, referenceSeconds } from '../../conformance/src/planned-placement/workloads.ts'

/** Limit of the price, relative to the lower bound. */
const mostOfBound = 1.05
const leastWherePlanned = 0.99

interface Line {
  readonly what: string
  readonly value: string
  readonly target: string
  readonly isMet: boolean
}

export function tableOf(outcome: Outcome): string {
  const { steps, requests } = outcome
  const blocks = [
    ...linesOf(outcome).map(({ what, value, target, isMet }) =>
      `${what.padEnd(24)} ${value.padStart(16)}  ${target.padEnd(12)} ${isMet ? '' : 'MISSED'}`.trimEnd(),
    ),
    '',
    line(['step', 'count', 'first s', 'half', '95 %', 'last']),
    ...steps.map(({ step, count, first, half, most, last }) =>
      line([step, count, ...[first, half, most, last].map((seconds) => seconds.toFixed(2))]),
    ),
    '',
    line(['request', 'status', 'count', 'mean ms']),
    ...requests.map(({ what, status, count, meanMs }) => line([what, status, count, meanMs])),
    ...outcome.complaints,
  ]
  return `${blocks.join('\n')}\n\n`
}

function line([name = '', ...cells]: readonly (string | number)[]): string {
  return `${String(name).padEnd(24)}${cells.map((cell) => String(cell).padStart(9)).join('')}`
}

export function jsonOf(outcome: Outcome): string {
  return `${JSON.stringify({ ...outcome, isMet: linesOf(outcome).every(({ isMet }) => isMet) })}\n`
}

function linesOf(outcome: Outcome): readonly Line[] {
  const { pods, bound, wherePlanned, nodes, launches, pricePerHour, seconds, cpuSeconds } = outcome
  const ratio = pricePerHour / lowerBoundPerHour
  const planned = wherePlanned / pods
  return [
    { what: 'pods bound', value: `${bound} of ${pods}`, target: 'all', isMet: bound === pods },
    {
      what: 'where planned',
      value: `${wherePlanned} (${(100 * planned).toFixed(1)} %)`,
      target: `>= ${100 * leastWherePlanned} %`,
      isMet: planned >= leastWherePlanned,
    },
    {
      what: 'nodes, by decision',
      value: `${nodes} (${launches.join(' + ')})`,
      target: 'one decision',
      isMet: launches.length === 1,
    },
    {
      what: 'price per hour',
      value: `${pricePerHour.toFixed(2)} (${ratio.toFixed(3)})`,
      target: `<= ${mostOfBound} of ${lowerBoundPerHour.toFixed(2)}`,
      isMet: ratio <= mostOfBound,
    },
    {
      what: 'all Ready after',
      value: `${seconds.toFixed(1)} s`,
      target: `<= ${referenceSeconds} s`,
      isMet: seconds <= referenceSeconds,
    },
    {
      what: 'slowest registration',
      value: `${(outcome.slowestRegistrationMs / 1000).toFixed(1)} s`,
      target: '',
      isMet: true,
    },
    { what: 'operator CPU', value: `${cpuSeconds.toFixed(1)} s`, target: '', isMet: true },
  ]
}
