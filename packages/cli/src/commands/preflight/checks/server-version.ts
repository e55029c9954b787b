/** Checks the version of the API server. */
import { minorOf, testedMinors } from '@tenon/api'
import type { Check, CheckOutcome } from '../check.ts'

export const serverVersion: Check = {
  name: 'server-version',
  run: async ({ kube }) => judge(await kube.serverVersion()),
}

function judge(gitVersion: string): CheckOutcome {
  const { oldest, newest } = testedMinors
  const minor = minorOf(gitVersion)
  const passed = { summary: `Kubernetes ${gitVersion}`, findings: [] }
  if (minor === undefined)
    return fail(
      `GET /version tells the version "${gitVersion.slice(0, 50)}", which is none of Kubernetes 1`,
      'check that the kubeconfig leads to a Kubernetes API server',
    )
  if (minor < oldest)
    return fail(
      `the API server is ${gitVersion}, which is older than v1.${oldest}`,
      `upgrade the control plane to v1.${oldest} or newer`,
    )
  if (minor > newest)
    return {
      ...passed,
      findings: [
        {
          status: 'warn',
          message: `the API server is ${gitVersion}; this release is tested up to v1.${newest}`,
          fix: 'look for a newer release of Tenon',
        },
      ],
    }
  return passed
}

function fail(message: string, fix: string): CheckOutcome {
  return { summary: '', findings: [{ status: 'fail', message, fix }] }
}
