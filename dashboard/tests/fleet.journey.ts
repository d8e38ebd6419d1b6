/** What an operator does in a day, in the fleet that `argosy up` makes. */
import { expect, FLEET, live, MACHINES_MS, REFUSALS, test } from './harness';
import { Server } from './server';

interface Node {
  id: string;
  pool: string;
  status: string;
}

let server: Server;

test.beforeAll(async () => {
  server = await Server.demo(24);
});
test.afterAll(async () => {
  await server?.stop();
});

/** A node of the pool that is in service, and nobody's patient yet. */
async function wellNode(pool: string): Promise<Node> {
  let found: Node | undefined;
  await expect
    .poll(
      async () => {
        const search = encodeURIComponent(`pool = '${pool}' and status = 'ACTIVE' and health = 'healthy' and liveness = 'Fresh'`);
        const { items } = await server.call<{ items: Node[] }>('GET', `${FLEET}/nodes?size=10&search=${search}`);
        found = items[0];
        return found?.id;
      },
      { timeout: MACHINES_MS, message: `a well node in ${pool}` },
    )
    .toBeTruthy();
  return found as Node;
}

test('a cluster is created through the form and becomes Ready before our eyes', async ({ page }) => {
  await page.goto(`${server.url}/ui/clusters`);
  await live(page);
  await page.getByRole('link', { name: 'Create a cluster' }).click();
  const name = page.getByLabel('Name', { exact: true });
  await name.fill('Not A Name');
  await expect(page.getByRole('alert').first()).toBeVisible();
  await name.fill('delta');
  await page.getByLabel('Provider').selectOption('gcp');
  await page.getByLabel('Region').selectOption('us-east1');
  await page.getByLabel('Labels').fill('team=ml');
  await expect(page.getByText('argosy cluster create delta --provider gcp --region us-east1 -l team=ml --wait')).toBeVisible();
  await expect(page.getByText('The server would take it.')).toBeVisible();
  await page.getByRole('button', { name: 'Create the cluster' }).click();

  await expect(page).toHaveURL(/\/ui\/clusters\/delta$/);
  await expect(page.getByRole('heading', { level: 1 })).toContainText('delta');
  // Not reloaded: it is the watch that says it.
  await expect(page.locator('.page-head .badge')).toHaveText(/Ready/, { timeout: MACHINES_MS });
  await expect(page.locator('.page-head .badge')).not.toHaveText(/Not Ready/);
});
