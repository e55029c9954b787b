/** Renders the screen of `tenon up`: pods, nodes, claims and their cost. */
import { counted, priceText } from '@tenon/api'

export interface ClusterFigures {
  readonly pods: { readonly pending: number; readonly running: number; readonly other: number }
  readonly nodes: readonly NodeRow[]
  /** Claims without a Node yet. */
  readonly claimsStarting: readonly ClaimRow[]
  /** Sum of the known prices. */
  readonly pricePerHour: number
  /** Such as `EUR`. */
  readonly priceUnit: string
  readonly unpriced: number
  /** Instances that the cloud bills for. */
  readonly instances: number
}

export interface NodeRow {
  readonly name: string
  readonly type: string
  readonly state: 'Ready' | 'NotReady' | 'Deleting'
  readonly pods: number
  readonly cpuUsed: number
  readonly cpuTotal: number
  readonly pricePerHour: number | undefined
}

export interface ClaimRow {
  readonly name: string
  readonly type: string
  readonly waitingFor: string
}

/** One line for logs and pipes; it changes only if the screen does. */
export function plainLine(figures: ClusterFigures): string {
  const { pods, nodes } = figures
  const ready = nodes.filter((node) => node.state === 'Ready').length
  return [
    `pods ${pods.running} running ${pods.pending} pending`,
    `nodes ${ready}/${nodes.length} ready`,
    `nodeclaims starting ${figures.claimsStarting.length}`,
    `instances ${figures.instances}`,
    sumText(figures),
  ].join('   ')
}

function sumText({ pricePerHour, priceUnit, unpriced }: ClusterFigures): string {
  const unknown = unpriced === 0 ? '' : ` + ${unpriced} without a known price`
  return `${priceText(pricePerHour, '?', 3)} ${priceUnit}/hour${unknown}`
}

const hoursPerMonth = 8760 / 12

/** A screen of at most `rows` lines of `columns` characters. */
export function screen(figures: ClusterFigures, columns: number, rows: number): string {
  const { pods, nodes, claimsStarting } = figures
  const cpuUsed = nodes.reduce((sum, node) => sum + node.cpuUsed, 0)
  const cpuTotal = nodes.reduce((sum, node) => sum + node.cpuTotal, 0)
  const monthly = (figures.pricePerHour * hoursPerMonth).toFixed(2)
  const header = [
    `${counted(nodes.length, 'node')}  ${cores(cpuUsed)}/${cores(cpuTotal)} cpu  ${bar(cpuUsed, cpuTotal, 20)} ${percent(cpuUsed, cpuTotal)}  ${sumText(figures)}  (${monthly} ${figures.priceUnit}/month)`,
    `${counted(pods.running + pods.pending + pods.other, 'pod')}  ${pods.pending} pending  ${pods.running} running  ${pods.other} other   ${claimsStarting.length} nodeclaims starting   ${figures.instances} instances`,
    '',
  ]
  const body = [
    ...nodes.map(
      (node) =>
        `${pad(node.name, 34)} ${pad(node.type, 20)} ${bar(node.cpuUsed, node.cpuTotal, 12)} ${percent(node.cpuUsed, node.cpuTotal).padStart(4)}  ${String(node.pods).padStart(3)} pods  ${price(node.pricePerHour)}  ${node.state}`,
    ),
    ...claimsStarting.map(
      (claim) => `${pad(claim.name, 34)} ${pad(claim.type, 20)} starting: ${claim.waitingFor}`,
    ),
  ]
  const room = Math.max(1, rows - header.length - 2)
  const shown =
    body.length > room ? [...body.slice(0, room - 1), `… and ${body.length - room + 1} more`] : body
  return [...header, ...shown, '', 'Ctrl-C stops everything'].map((line) => line.slice(0, columns)).join('\n')
}

function pad(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width)
}

function price(pricePerHour: number | undefined): string {
  return priceText(pricePerHour).padStart(8)
}

function cores(millis: number): string {
  return (millis / 1000).toFixed(1)
}

function percent(used: number, total: number): string {
  return total === 0 ? '-' : `${Math.round((100 * used) / total)}%`
}

function bar(used: number, total: number, width: number): string {
  const full = total === 0 ? 0 : Math.round((width * Math.min(used, total)) / total)
  return `${'█'.repeat(full)}${'░'.repeat(width - full)}`
}
