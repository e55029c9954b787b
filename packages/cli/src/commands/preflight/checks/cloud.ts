/** Checks the cloud: credentials, their rights, host names. */
import type { CloudAccess, CloudOperation, OperationAnswer } from '@tenon/provider'
import { type Check, type CheckOutcome, few, type Finding, type PreflightContext } from '../check.ts'
import { inParallel } from '../in-parallel.ts'

const atOnce = 4

const nameProvider: Finding = {
  status: 'warn',
  message: 'no provider is named, and no node tells which it is',
  fix: 'name it with --provider',
}

/** The outcome if there is no cloud to ask; undefined if there is one. */
function withoutAccess({ cloud }: PreflightContext): CheckOutcome | undefined {
  if (cloud.kind === 'unknown') return { summary: '', findings: [nameProvider] }
  if (cloud.kind === 'silent') return { summary: `${cloud.module.title} has none`, findings: [] }
  return undefined
}

export const credentials: Check = {
  name: 'credentials',
  run: async (context, signal) => {
    const { cloud } = context
    if (cloud.kind === 'unset')
      return {
        summary: '',
        findings: [
          {
            status: 'fail',
            message: cloud.message,
            fix: 'give preflight the variables that the controller has, in its environment',
          },
        ],
      }
    if (cloud.kind !== 'open') return withoutAccess(context) ?? { summary: '', findings: [] }
    const { operations, credentialsFix } = cloud.access
    for (const operation of operations) {
      const answer = await operation.attempt(signal)
      if (answer.kind === 'unauthorized')
        return {
          summary: '',
          findings: [{ status: 'fail', message: `not accepted: ${answer.message}`, fix: credentialsFix }],
        }
      // Public operations succeed without valid credentials, so several are tried.
      if (answer.kind === 'refused') break
      if (answer.kind === 'unknown')
        return { summary: '', findings: [unanswered(cloud.access, operation, answer.message)] }
    }
    return { summary: `accepted by ${cloud.module.title}`, findings: [] }
  },
}

export const cloudRights: Check = {
  name: 'cloud-rights',
  run: async (context, signal) => {
    const { cloud } = context
    if (cloud.kind === 'unset')
      return {
        summary: '',
        findings: [{ status: 'warn', message: 'not asked: settings are missing', fix: 'see credentials' }],
      }
    if (cloud.kind !== 'open') return withoutAccess(context) ?? { summary: '', findings: [] }
    const { access, module } = cloud
    const answers = await inParallel(access.operations, atOnce, async (operation) => ({
      operation,
      answer: await operation.attempt(signal),
    }))
    return {
      summary:
        answers.length === 0
          ? `${module.title} needs none beside those in the cluster`
          : `all ${answers.length} operations may be called`,
      findings: rightsFindings(access, answers),
    }
  },
}

interface Answered {
  readonly operation: CloudOperation
  readonly answer: OperationAnswer
}

function rightsFindings(access: CloudAccess, answers: readonly Answered[]): readonly Finding[] {
  if (answers.some(({ answer }) => answer.kind === 'unauthorized'))
    return [
      {
        status: 'warn',
        message: 'not known: the credentials are not accepted',
        fix: access.credentialsFix,
      },
    ]
  const refused = answers.filter(({ answer }) => answer.kind === 'refused')
  const needed = refused.filter(({ operation }) => operation.optional === undefined)
  const optional = refused.filter(({ operation }) => operation.optional !== undefined)
  const unknown = answers.flatMap(({ operation, answer }) =>
    answer.kind === 'unknown' ? [unanswered(access, operation, answer.message)] : [],
  )
  const names = (list: readonly Answered[]) => list.map(({ operation }) => operation.name)
  return [
    ...(needed.length === 0
      ? []
      : [
          {
            status: 'fail' as const,
            message: `the credentials may not ${names(needed).join(', ')}`,
            fix: access.grantFix(names(needed)),
          },
        ]),
    ...(optional.length === 0
      ? []
      : [
          {
            status: 'warn' as const,
            message: `the credentials may not ${names(optional).join(', ')}: ${few([
              ...new Set(optional.map(({ operation }) => operation.optional ?? '')),
            ])}`,
            fix: access.grantFix(names(optional)),
          },
        ]),
    ...unknown.slice(0, 1),
  ]
}

function unanswered(access: CloudAccess, { name }: CloudOperation, message: string): Finding {
  const from = access.hosts.length === 0 ? '' : ` ${access.hosts.join(' and ')} can be reached from here, and`
  return {
    status: 'fail',
    message: `${name}: ${message}`,
    fix: `check that${from} the settings of the provider are right`,
  }
}

export const cloudDns: Check = {
  name: 'cloud-dns',
  run: async (context) => {
    const { cloud, resolveHost } = context
    if (cloud.kind === 'unset')
      return {
        summary: '',
        findings: [{ status: 'warn', message: 'not asked: settings are missing', fix: 'see credentials' }],
      }
    if (cloud.kind !== 'open') return withoutAccess(context) ?? { summary: '', findings: [] }
    const { hosts } = cloud.access
    const findings = await inParallel(hosts, atOnce, async (host): Promise<readonly Finding[]> => {
      try {
        await resolveHost(host)
        return []
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error)
        return [
          {
            status: 'fail',
            message: `${host} has no address: ${why}`,
            fix: 'check the DNS of this computer, and in the cluster CoreDNS and dnsPolicy of the controller',
          },
        ]
      }
    })
    const summary = hosts.length === 0 ? 'there is no name to resolve' : `${hosts.join(', ')} can be resolved`
    return { summary, findings: findings.flat() }
  },
}
