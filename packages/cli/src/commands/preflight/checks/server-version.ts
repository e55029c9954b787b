/** Checks the version of the API server. */
import type { Check, CheckOutcome } from '../check.ts'

/** Minor versions that Tenon is tested with. */
const oldest = 30
const newest = 36

export const serverVersion: Check = {
  name: 'server-version',
  run: async ({ kube }) => judge(await kube.serverVersion()),
}

function judge(gitVersion: string): CheckOutcome {
  const [, major, minor = ''] = /^v(\d+)\.(\d+)\./.exec(gitVersion) ?? []
  const passed = { summary: `Kubernetes ${gitVersion}`, findings: [] }
  if (major === undefined)
    return fail(
      `GET /version tells the version "${gitVersion.slice(0, 50)}"`,
      'check that the kubeconfig leads to a Kubernetes API server',
    )
  const isOld = Number(major) < 1 || (Number(major) === 1 && Number(minor) < oldest)
  if (isOld)
    return fail(
      `the API server is ${gitVersion}, which is older than v1.${oldest}`,
      `upgrade the control plane to v1.${oldest} or newer`,
    )
  if (Number(major) > 1 || Number(minor) > newest)
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
