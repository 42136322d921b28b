// Downloads URLs by Node's fetch: download.mjs URL...
//
// Prints, for each of them, the status, the name that the answer gives the file, and the SHA-256 of its content.
// The API key is in SANDBOX_API_KEY.

import { createHash } from "node:crypto";

const headers = { Authorization: `Bearer ${process.env.SANDBOX_API_KEY}` };
for (const url of process.argv.slice(2)) {
    const answer = await fetch(url, { headers });
    const name = (answer.headers.get("content-disposition") ?? "none").split("''").pop();
    const content = Buffer.from(await answer.arrayBuffer());
    console.log(answer.status, name, createHash("sha256").update(content).digest("hex"));
}
